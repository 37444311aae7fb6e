"""`headgate status`: the processes of the cluster, its tables with owner, freshness and cost of a checkpoint, and alarms."""

import functools
import shutil
import sys
import threading
from dataclasses import asdict
from typing import Any

import click

import headgate
from headgate.status import TableStatus
from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options
from headgate_cli.output import Output, json_option, size
from headgate_cli.screen import fit, printed


@click.command("status", short_help="Show processes, tables and alarms.")
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C; as much as fits the screen, alarms first.")
@click.option("--interval", default=1.0, show_default=True, type=click.FloatRange(0.1), help="Seconds, for --watch.")
@cluster_options()
@json_option
@click.pass_obj
def status(output: Output, watch: bool, interval: float, access: Access) -> None:
    """Shows coordinators, writers, compactors, tables, running compactions and alarms.

    `checkpoint s`, `files` and `bytes` are the cost of a table's last checkpoint: its seconds from barrier to published, and the
    data files that it wrote. With a longer checkpoint_interval, checkpoints are rarer and each costs more.

    \b
    Examples:
      headgate status
      headgate status --watch --interval 5
      headgate status --json | jq '.tables[] | {name, last_commit_ms, alarms}'
    """  # noqa: D301 - click wants the backspace
    if not watch:
        _show(output, gather(access))
        return
    pause = threading.Event()
    while True:
        found = _attempt(access)
        if output.json or not sys.stdout.isatty():
            _refresh(output, found)
        else:
            lines = printed(functools.partial(_refresh, output, found))
            window = shutil.get_terminal_size()
            click.clear()
            # The last line stays empty: a full screen would scroll.
            click.echo("\n".join(fit(lines, window.columns, window.lines - 1)))
        pause.wait(interval)


def _refresh(output: Output, found: dict[str, Any] | headgate.HeadgateError) -> None:
    """Alarms come first: the end of a screen may be cut off."""
    if isinstance(found, headgate.HeadgateError):
        output.print_text(str(found), fg="yellow")
        return
    _show_alarms(output, found)
    _show_parts(output, found)


def gather(access: Access) -> dict[str, Any]:
    """The state of the whole cluster, from every coordinator that is alive. Raises HeadgateError when none answers."""
    with access.connect() as cluster:
        return _gather(cluster)


def _gather(cluster: headgate.Headgate) -> dict[str, Any]:
    first = cluster.status()
    tables = {found.name: _table(found, first) for found in first.tables}
    compactors = [asdict(found) for found in first.compactors]
    silent = set()
    alarms = [f"{first.coordinator}: {alarm}" for alarm in first.alarms]
    for other in first.coordinators:
        if other.name == first.coordinator:
            continue
        try:
            answer = cluster.status(coordinator=other.address)
        except headgate.RetryLater:
            silent.add(other.name)
            continue
        if answer.coordinator != other.name:  # behind a front address another one answers for one that is gone
            silent.add(other.name)
            continue
        alarms += [f"{answer.coordinator}: {alarm}" for alarm in answer.alarms]
        compactors = _with_running(compactors, answer)
        # A table's owner knows more of it than other coordinators.
        known = [found for found in answer.tables if found.state == "owned" or found.name not in tables]
        tables |= {found.name: _table(found, answer) for found in known}
    return {
        "redis_reachable": first.redis_reachable,
        "coordinators": [{**asdict(found), "answers": found.name not in silent} for found in first.coordinators],
        "writers": [asdict(found) for found in first.writers],
        "compactors": compactors,
        "tables": [tables[name] for name in sorted(tables)],
        "alarms": alarms,
    }


def _with_running(compactors: list[dict[str, Any]], answer: headgate.Status) -> list[dict[str, Any]]:
    """Adds the running operations that ``answer`` counts: a coordinator counts only those of its own tables."""
    others = {found.process: asdict(found) for found in answer.compactors}
    known = {compactor["process"] for compactor in compactors}
    for compactor in compactors:
        compactor["running"] += others.get(compactor["process"], {"running": 0})["running"]
    return [*compactors, *(found for process, found in others.items() if process not in known)]


def _attempt(access: Access) -> dict[str, Any] | headgate.HeadgateError:
    try:
        return gather(access)
    except headgate.RetryLater as error:
        return error


def _show_alarms(output: Output, found: dict[str, Any]) -> None:
    for alarm in found["alarms"]:
        output.print_text(alarm, fg="yellow")
    for table in found["tables"]:
        for alarm in table["alarms"]:
            output.print_text(f"{table['name']}: {alarm}", fg="yellow")


def _show(output: Output, found: dict[str, Any]) -> None:
    _show_parts(output, found)
    _show_alarms(output, found)


def _show_parts(output: Output, found: dict[str, Any]) -> None:
    output.print_json(found)
    if output.json:
        return
    if not found["redis_reachable"]:
        output.print_text(
            "Redis does not answer: tables keep their owners, but no coordinator takes over from one that dies.", fg="yellow"
        )
    output.print_records(found["coordinators"], empty="no coordinators")
    output.print_text("")
    writers = [{**writer, "uncommitted": size(writer["uncommitted_bytes"])} for writer in found["writers"]]
    output.print_records(writers, ["address", "process", "leaving", "uncommitted"], empty="no writers: the cluster takes no rows")
    output.print_text("")
    output.print_records(found["compactors"], empty="no compactors: log files pile up, and reads get slower")
    output.print_text("")
    output.print_records([_priced(table) for table in found["tables"]], empty="no tables")
    running = [_progress(table, operation) for table in found["tables"] for operation in table["operations"]]
    if running:
        output.print_text("")
        output.print_records(running)


def _priced(table: dict[str, Any]) -> dict[str, Any]:
    """A table's columns for people, as many as fit on a line."""
    return {
        "table": table["name"],
        "state": table["state"],
        "owner": table["owner"],
        "epoch": table["epoch"],
        "checkpoint": f"{table['generation']}.{table['checkpoint']}",
        "channels": table["channels"],
        "uncommitted": size(table["uncommitted_bytes"]),
        "last instant": table["last_instant"] or None,
        "checkpoint s": table["checkpoint_seconds"],
        "files": table["checkpoint_files"],
        "bytes": size(table["checkpoint_bytes"]),
        "compacting": _compacting(table),
    }


def _compacting(table: dict[str, Any]) -> str | None:
    running, queued = len(table["operations"]), table["operations_queued"]
    return f"{running} + {queued} wait" if queued else str(running) if running else None


def _progress(table: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """A running operation's columns, for people."""
    whole = operation["of_bytes"]
    return {
        "compacting": f"{table['name']} {operation['partition']}".strip(),
        "file group": operation["file_id"],
        "at": operation["host"] or operation["compactor"],
        "try": operation["attempt"],
        "read": f"{size(operation['bytes_done'])} of {size(whole)}",
        "%": min(100, round(100 * operation["bytes_done"] / whole)) if whole else None,
        "rows": operation["rows_done"],
        "s": round(operation["seconds"], 1),
    }


def _table(found: TableStatus, answer: headgate.Status) -> dict[str, Any]:
    return asdict(found) | ({"owner": found.owner or answer.coordinator} if found.state == "owned" else {})
