"""`headgate table drop` deletes a table, now or later, after showing what goes."""

import dataclasses
import datetime
import sys
from collections.abc import Sequence

import click

from headgate_cli.cluster import Access
from headgate_cli.durations import DURATION, MILLISECOND
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.options import storage_settings
from headgate_cli.output import Output, counted
from headgate_tables.errors import TableDroppedError
from headgate_tables.face.log import parse_time
from headgate_tables.face.results import DropResult
from headgate_tables.opening import finish_drop

_GRACE = datetime.timedelta(days=7)
_SHOWN = 10
"""Names of files of others that the text has; with --json there are more."""


@click.command("drop", short_help="Delete a table, now or later.")
@click.option("--yes", is_flag=True, help="Do not ask for the table's name.")
@click.option("--plan-only", is_flag=True, help="Show what would be deleted; change nothing.")
@click.option("--grace", type=DURATION, help=f"Keep its files for this time: `undrop` brings it back.  [{_GRACE.days}d]")
@click.option("--now", is_flag=True, help="Delete its files at once, for good.")
@table_command
def drop(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    yes: bool,
    plan_only: bool,
    grace: datetime.timedelta | None,
    now: bool,
) -> None:
    """Drops TABLE (a name, or an address with a slash) with all its rows, savepoints and channels.

    By name its files stay for 7 days, in which `headgate table undrop TABLE` brings it back; then its owner deletes them. Until
    then no other table gets the name. With --now they are deleted at once, also those of a table that was dropped before. At an
    address there is no owner who could do it later, so it is always done at once.

    Producers get TableDroppedError. Only the table's own files are deleted: others in its folder stay, and are listed. A new
    table of the same name can be created once they are deleted; it lies in another folder. At an address, no table can be made
    again where one was dropped: a small file is left there, which says so. A drop that broke off is finished by the table's next
    owner; at an address, when the command is given again. A copy of a partition in another folder of the table stays, too.

    \b
    Examples:
      headgate table drop flights --plan-only
      headgate table drop flights --yes
      headgate table drop flights --grace 30d --yes
      headgate table drop flights --now --yes
      headgate table drop s3://lake/flights --storage region=eu-central-1
    """  # noqa: D301 - click wants the backspace
    if grace is not None and (now or is_address(table_name)):
        raise click.UsageError("--grace goes neither with --now nor with an address")
    grace_ms = 0 if now else (_GRACE if grace is None else grace) // MILLISECOND
    found = _Address(table_name, storage) if is_address(table_name) else _Name(table_name, access, grace_ms)
    try:
        planned = found.plan()
    except TableDroppedError:
        if plan_only:
            raise
        planned = None  # at an address: to finish a drop deletes nothing that was not decided then
    if planned is not None and plan_only:
        output.print_json(dataclasses.asdict(planned))
        output.print_text(f"Would be deleted: {_files(planned)}.")
        _print_left(output, planned)
        return
    if planned is not None and not yes:
        _confirm(output, table_name, planned, for_good=found.grace_ms == 0)
    record = found.drop()
    output.print_json(dataclasses.asdict(record))
    if record.until_ms:
        until = f"{table_name} is dropped. Its files stay until {_time(record.until_ms)}: `headgate table undrop {table_name}`."
        output.print_text(until, fg="green")
        return
    output.print_text(f"{table_name} is dropped: {_files(record)}.", fg="green")
    _print_left(output, record)


@dataclasses.dataclass(frozen=True)
class _Record:
    """What was deleted, or would be; with --json it is printed as it is. ``dropped_ms``: 0 as long as nothing was.
    ``until_ms``: to when the table can be brought back.
    """

    dropped_ms: int
    principal: str
    files: int
    bytes: int
    left: Sequence[str]
    left_count: int
    until_ms: int = 0


class _Name:
    """A table of a cluster. What is planned and what is dropped are one table, also when another gets its name meanwhile."""

    def __init__(self, name: str, access: Access, grace_ms: int) -> None:
        self._name = name
        self._access = access
        self.grace_ms = grace_ms
        with access.connect() as cluster:
            dropped = {each.name: each.uuid for each in cluster.dropped_tables()} if grace_ms == 0 else {}
            self._uuid = dropped.get(name) or cluster.table(name).info.uuid

    def plan(self) -> _Record:
        return _Record(**fields_of(call_owner(self._access, self._name, lambda owner: owner.drop(self._uuid, plan_only=True))))

    def drop(self) -> _Record:
        return _Record(
            **fields_of(call_owner(self._access, self._name, lambda owner: owner.drop(self._uuid, grace_ms=self.grace_ms)))
        )


class _Address:
    """A table without a cluster; this process drops it."""

    grace_ms = 0

    def __init__(self, address: str, storage: tuple[str, ...]) -> None:
        self._address = address
        self._storage = storage

    def plan(self) -> _Record:
        with open_address(self._address, self._storage) as table:
            return _record(table.drop(plan_only=True))

    def drop(self) -> _Record:
        try:
            with open_address(self._address, self._storage) as table:
                return _record(table.drop())
        except TableDroppedError:
            return self._finished()

    def _finished(self) -> _Record:
        done = finish_drop(self._address, storage_options=storage_settings(self._storage))
        if done is None:
            raise CommandError(
                f"what was left of the table at {self._address} is gone", fix="Nothing is left to do.", code=ExitCode.FIX_CALL
            )
        return _record(done)


def _record(done: DropResult) -> _Record:
    return _Record(
        dropped_ms=parse_time(done.time) if done.time else 0,
        principal=done.by,
        files=done.files,
        bytes=done.bytes,
        left=done.left,
        left_count=done.left_count,
    )


def _files(record: _Record) -> str:
    files = f"{counted(record.files, 'data file')}, {counted(record.bytes, 'byte')}"
    if not record.dropped_ms:
        return files
    return f"{files}, at {_time(record.dropped_ms)}"


def _time(ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _print_left(output: Output, record: _Record) -> None:
    if record.left_count:
        names = ", ".join(record.left[:_SHOWN])
        more = ", …" if record.left_count > _SHOWN else ""
        output.print_text(f"Not the table's, and left where they are: {names}{more} ({record.left_count:,} in all).", fg="yellow")


def _confirm(output: Output, table_name: str, planned: _Record, *, for_good: bool) -> None:
    if output.json:
        raise CommandError("with --json, drop cannot ask for the table's name", fix="Add --yes.", code=ExitCode.USAGE)
    if not sys.stdin.isatty():
        said = f"{table_name}: {_files(planned)} would be deleted, and nobody is there who could be asked"
        raise CommandError(said, fix="Add --yes.", code=ExitCode.USAGE)
    click.echo(
        f"{table_name}: {_files(planned)} will be deleted{' for good' if for_good else ' after the grace time'}.", err=True
    )
    if click.prompt("Give the table's name to drop it", err=True) != table_name:
        raise CommandError("that is not the table's name", fix="Nothing was done. Give the name as before.", code=ExitCode.USAGE)
