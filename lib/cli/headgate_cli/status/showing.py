"""The state of a cluster for people, and for programs."""

from typing import Final

from headgate_cli.output import Output, counted, size
from headgate_cli.status.advice import advice
from headgate_cli.status.figures import Found, freshness, lag, operation_row, rate, span, table_row

_MOST_CHANNELS: Final = 20
_SEE_TABLE: Final = "`headgate status TABLE` or --json shows them."


def show(output: Output, found: Found, now_ms: int) -> None:
    """Prints what ``gather`` found. Alarms come first, and processes last: the end of a screen may be cut off."""
    output.print_json(found)
    if output.json:
        return
    _show_alarms(output, found)
    if any("channel_list" in table for table in found["tables"]):
        for table in found["tables"]:
            _show_table(output, table, now_ms)
        return
    output.print_records([table_row(table, now_ms) for table in found["tables"]], empty="no tables", instead=_SEE_TABLE)
    _show_operations(output, found["tables"])
    _show_processes(output, found)


def _show_alarms(output: Output, found: Found) -> None:
    alarms = [*found["alarms"], *(f"{table['name']}: {alarm}" for table in found["tables"] for alarm in table["alarms"])]
    for text in [*alarms, *advice(found)]:
        output.print_text(text, fg="yellow")
    if alarms or advice(found):
        output.print_text("")


def _show_operations(output: Output, tables: list[Found]) -> None:
    running = [operation_row(table, operation) for table in tables for operation in table["operations"]]
    if running:
        output.print_text("")
        output.print_records(running)


def _show_processes(output: Output, found: Found) -> None:
    output.print_text("")
    output.print_records(found["coordinators"], empty="no coordinators")
    output.print_text("")
    writers = [{**writer, "uncommitted": size(writer["uncommitted_bytes"])} for writer in found["writers"]]
    output.print_records(writers, ["address", "uncommitted", "leaving", "process"], empty="no writers")
    output.print_text("")
    output.print_records(found["compactors"], ["host", "running", "free", "leaving", "process"], empty="no compactors")


def _show_table(output: Output, table: Found, now_ms: int) -> None:
    output.print_record(
        {
            "table": table["name"],
            "state": table["state"],
            "owner": table["owner"] or None,
            "rows/s": rate(table),
            "freshness": freshness(table),
            "lag": lag(table),
            "last commit": f"{span(now_ms, table['last_commit_ms'])} ago" if table["last_commit_ms"] else None,
            "last instant": table["last_instant"] or None,
            "uncommitted": size(table["uncommitted_bytes"]),
            "last checkpoint": f"{table['checkpoint_seconds']:.3f} s, {counted(table['checkpoint_files'], 'file')}, "
            f"{size(table['checkpoint_bytes'])}",
            "checkpoint": f"{table['checkpoint']:,} of generation {table['generation']:,}, epoch {table['epoch']:,}",
            "channels open": table["channels"],
            "compactions": f"{len(table['operations']):,} running, {table['operations_queued']:,} waiting",
        }
    )
    _show_operations(output, [table])
    _show_channels(output, table, now_ms)


def _show_channels(output: Output, table: Found, now_ms: int) -> None:
    channels = table["channel_list"]
    if channels is None:
        if table["state"] == "owned":
            output.print_text("\nThe right `operate` is needed to see its channels.")
        return
    rows = [
        {
            "channel": channel["name"],
            "received": channel["committed_offset"] + channel["lag"],
            "committed": channel["committed_offset"],
            "lag": channel["lag"],
            "last used": f"{span(now_ms, channel['last_used_ms'])} ago",
            "principal": channel["principal"],
        }
        for channel in channels[:_MOST_CHANNELS]
    ]
    output.print_text("")
    output.print_records(rows, empty="no channels: nothing was sent yet")
    if more := len(channels) - len(rows):
        output.print_text(f"{more:,} more channels: `headgate table channels {table['name']}` lists all.")
