"""`headgate table delete`: deletes the rows that a condition selects, after counting them."""

import json
import sys
from dataclasses import asdict
from typing import Any, Protocol

import click

import headgate
from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError, describe_error
from headgate_cli.maintenance.target import is_address, open_address
from headgate_cli.options import NAME_OR_URL, cluster_options, storage_option, storage_settings
from headgate_cli.output import Output, counted, json_option
from headgate_cli.table import storage as stored
from headgate_cli.table.erasure import erasure_notes
from headgate_cli.table.json_lines import json_lines
from headgate_cli.table.location import open_unowned, take_over_option
from headgate_cli.table.python_rows import python_rows
from headgate_tables.face.results import DeleteResult

_Done = DeleteResult | headgate.Deletion
"""By this process, or through a cluster."""
_SAMPLE = 10
_SHOWN = 20
"""Partitions that the text has; with --json all of them."""
_LATER_WRITES = (
    "The table has no ordering column, so the later write wins: rows that producers write again while this runs are deleted, too."
)


@click.command("delete", short_help="Delete the rows that a condition selects.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--where", required=True, metavar="SQL", help="Condition, such as \"customer = 47 OR mail LIKE '%@example.org'\".")
@click.option("--dry-run", is_flag=True, help="Show how many rows match, where, and ten of them; change nothing.")
@click.option("--yes", is_flag=True, help="Do not count first and ask for confirmation.")
@click.option("--channel", default="", help="With a name: the channel that sends the deletes. [from the condition]")
@take_over_option
@cluster_options(timeout_s=60.0)
@storage_option
@json_option
@click.pass_obj
def delete(
    output: Output,
    /,
    table_name: str,
    where: str,
    access: Access,
    storage: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    channel: str,
    take_over: bool,
) -> int:
    """Deletes the rows of TABLE for which the condition SQL is true. Where a null makes it unknown, a row stays.

    With a name, rows may stream in meanwhile. What matches in the newest commit is deleted by key through a channel, in one or
    several commits, and the command returns when readers see none of these rows. In a table with an ordering column a row that is
    updated meanwhile stays. In one without, the later write wins, so a row that is written again meanwhile is deleted, too.
    Exit code 1: rows match that came meanwhile. Run the same command again, as after a break.

    With an address, this process owns the table while it runs, and deletes in one commit.

    Reading needs access to the table's storage, deleting by name the rights read and write. The bytes stay in files until
    compaction and cleaning, and savepoints keep them: the command says how long.

    \b
    Examples:
      headgate table delete orders --where "customer = 4711" --dry-run
      headgate table delete orders --where "customer = 4711" --yes
      headgate table delete s3://lake/orders --where "day < '2020-01-01' AND status IN ('void', 'test')"
    """  # noqa: D301 - click wants the backspace
    place: _Place
    if is_address(table_name):
        if channel:
            raise click.UsageError("--channel goes with a table's name: at an address this process deletes, without a channel")
        place = _Address(table_name, storage, take_over=take_over)
    elif take_over:
        raise click.UsageError("--take-over goes with a table's address: its coordinators have ended, and know no name")
    else:
        place = _Name(table_name, access, storage, channel)
    if dry_run:
        _show_matches(output, place, where)
        return ExitCode.OK
    if not yes:
        _confirm(output, place, table_name, where)
    done = place.delete(where)
    return _show_done(output, place, table_name, done)


class _Place(Protocol):
    """Where rows are counted and deleted."""

    @property
    def is_name(self) -> bool: ...

    def location(self) -> stored.Location: ...

    def count(self, where: str) -> _Done: ...

    def delete(self, where: str) -> _Done: ...


class _Address:
    is_name = False

    def __init__(self, address: str, storage: tuple[str, ...], *, take_over: bool) -> None:
        self._address = address
        self._storage = storage
        self._take_over = take_over

    def location(self) -> stored.Location:
        return stored.Location(self._address, storage_settings(self._storage))

    def count(self, where: str) -> _Done:
        with self.location().open() as table:
            return table.delete_where(where, dry_run=True)

    def delete(self, where: str) -> _Done:
        if self._take_over:
            with open_unowned(self.location(), take_over=True) as table:
                return table.delete_where(where)
        with open_address(self._address, self._storage) as table:
            return table.delete_where(where)


class _Name:
    is_name = True

    def __init__(self, name: str, access: Access, storage: tuple[str, ...], channel: str) -> None:
        self._name = name
        self._access = access
        self._options = storage_settings(storage)
        self._channel = channel

    def location(self) -> stored.Location:
        with self._access.connect() as cluster:
            return stored.Location(cluster.table(self._name).info.url, self._options)

    def count(self, where: str) -> _Done:
        with self._access.connect() as cluster:
            return cluster.table(self._name).delete_where(where, dry_run=True, storage_options=self._options)

    def delete(self, where: str) -> _Done:
        with self._access.connect() as cluster:
            return cluster.table(self._name).delete_where(where, channel=self._channel, storage_options=self._options)


def _show_matches(output: Output, place: _Place, where: str) -> None:
    found = place.count(where)
    sample = stored.scan(place.location(), (), (), (), _SAMPLE, where=where, as_of=found.as_of or None)
    batches = list(sample.batches)
    partitions = _partitions(found)
    lines = b"".join(map(json_lines, batches)).splitlines()
    output.print_json({"rows": found.rows, "partitions": partitions, "sample": [*map(json.loads, lines)]})
    output.print_text(f"{_rows_of(found)} would be deleted.")
    if output.json or not found.rows:
        return
    if "" not in found.partitions:
        output.print_records(partitions[:_SHOWN])
        if len(partitions) > _SHOWN:
            output.print_text(f"and {len(partitions) - _SHOWN:,} more partitions")
    output.print_text("")
    output.print_records([row for batch in batches for row in python_rows(batch)], data=True)


def _confirm(output: Output, place: _Place, table_name: str, where: str) -> None:
    if output.json:
        raise CommandError("with --json, delete cannot ask for confirmation", fix="Add --yes.", code=ExitCode.USAGE)
    said = f"{_rows_of(place.count(where))} of {table_name}"
    if not sys.stdin.isatty():
        message = f"{said} would be deleted, and nobody is there who could be asked"
        raise CommandError(message, fix="Add --yes.", code=ExitCode.USAGE)
    with place.location().open() as table:
        if place.is_name and table.definition is not None and table.definition.ordering is None:
            click.echo(_LATER_WRITES, err=True)
    click.confirm(f"Delete {said}?", abort=True, err=True)


def _rows_of(found: _Done) -> str:
    places = "" if "" in found.partitions or not found.rows else f" in {counted(len(found.partitions), 'partition')}"
    return f"{counted(found.rows, 'row')}{places}"


def _show_done(output: Output, place: _Place, table_name: str, done: _Done) -> int:
    left, by = 0, ""
    if isinstance(done, headgate.Deletion):
        left, by = done.left or 0, f"through channel {done.channel}, up to offset {done.offset:,}"
    else:
        by = f"in {done.instant}"
    if done.rows:
        output.print_text(f"{_rows_of(done)} deleted, {by}.", fg="green")
    else:
        output.print_text("No row matches.")
    _show_where_bytes_are(output, place, table_name, done)
    if left:
        output.print_text(f"Rows that match came meanwhile: {left:,}. Run the same command again.", fg="yellow")
    return ExitCode.PROBLEMS if left else ExitCode.OK


def _show_where_bytes_are(output: Output, place: _Place, table_name: str, done: _Done) -> None:
    """And the record for programs, with the savepoints: rows are deleted, whether or not the table can be read again."""
    savepoints: list[str] | None = None
    try:
        with place.location().open() as table:
            settings, savepoints = table.settings, list(table.savepoints)
    except Exception as error:
        failure = describe_error(error)
        if failure is None:
            raise
        output.print_warning(f"which savepoints keep their bytes is not known: {failure.message}. {failure.fix}")
        return
    finally:
        output.print_json({**_record(done), "savepoints": savepoints})
    for note in erasure_notes(table_name, settings, savepoints, in_cluster=place.is_name) if done.rows else ():
        output.print_text(note)


def _record(done: _Done) -> dict[str, Any]:
    return {**asdict(done), "partitions": _partitions(done)}


def _partitions(found: _Done) -> list[dict[str, object]]:
    return [{"partition": path, "rows": rows} for path, rows in found.partitions.items()]
