"""`headgate table slice …`: file slices that cannot be compacted, set aside and taken in again."""

from typing import Any

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.where import ask_owner, is_address, opened, plain, table_command
from headgate_cli.output import Output
from headgate_tables import hudi
from headgate_tables.errors import TablesError
from headgate_tables.hudi.services.results import SliceFigures
from headgate_tables.hudi.services.stuck import StuckSlice


@click.group("slice")
def slice_() -> None:
    """File slices that cannot be compacted, mostly because a file of theirs is damaged."""


@slice_.command("set-aside")
@click.option("--comment", default="", help="Why, for people. [what compaction said of it]")
@table_command
@click.argument("slice_name", metavar="SLICE")
def set_aside(
    output: Output, /, table_name: str, slice_name: str, access: Access, storage: tuple[str, ...], comment: str
) -> None:
    """Sets the file slice SLICE (partition/file group) of TABLE aside: its rows are refused, and it is not compacted.

    Everything else goes on as before. A batch with rows of it is refused with SliceSetAsideError, which says which ones: a
    program sends the others in its place, and keeps these. Readers still see the slice's files, and fail where these are damaged.

    \b
    Examples:
      headgate table slice list flights
      headgate table slice set-aside flights day=2026-07-11/00000003-5f0e-5a4b-9c1d-0f6f1c1c2b7a-0
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with opened(table_name, storage) as table:
            table.set_aside(slice_name, comment)
            found = _records(table)
    else:
        found = plain(ask_owner(access, table_name, lambda owner: owner.set_slice_aside(slice_name, comment)))["slices"]
    _show(output, found)
    output.say(f"{slice_name} is set aside. Back, once its files are in order: headgate table slice take-in", fg="green")


@slice_.command("take-in")
@table_command
@click.argument("slice_name", metavar="SLICE")
def take_in(output: Output, /, table_name: str, slice_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Takes the file slice SLICE of TABLE in again, once its files are in order: its rows are taken, and it is compacted next.

    Restore the file from a copy first, byte for byte under its own name; `headgate verify` says whether all are in order. To have
    the slice compacted at once: `headgate compact`.

    \b
    Examples:
      headgate table slice take-in flights day=2026-07-11/00000003-5f0e-5a4b-9c1d-0f6f1c1c2b7a-0
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with opened(table_name, storage) as table:
            table.take_in(slice_name)
            found = _records(table)
    else:
        found = plain(ask_owner(access, table_name, lambda owner: owner.take_slice_in(slice_name)))["slices"]
    _show(output, found)
    output.say(f"{slice_name} takes rows.", fg="green")


@slice_.command("list")
@table_command
def list_(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Shows file slices of TABLE that cannot be compacted, or are set aside, and why."""
    if is_address(table_name):
        with opened(table_name, storage) as table:
            found = _records(table)
    else:
        found = plain(ask_owner(access, table_name, lambda owner: owner.list_slices()))["slices"]
    _show(output, found)


def _records(table: hudi.Table) -> list[dict[str, Any]]:
    """As an owner answers them (``StuckSlice`` of maintenance.proto)."""
    return [_record(stuck, waiting) for stuck, waiting in zip(table.stuck, _waiting(table), strict=True)]


def _waiting(table: hudi.Table) -> list[SliceFigures]:
    """In each of its stuck slices; 0 when files are damaged such that nobody can count, which is no reason to show no slice."""
    try:
        if table.stuck:
            table.file_groups()  # nothing is counted before the table was listed
        return [table.figures_of(each) or SliceFigures() for each in table.stuck]
    except TablesError:
        return [SliceFigures() for _ in table.stuck]


def _record(stuck: StuckSlice, waiting: SliceFigures) -> dict[str, Any]:
    return {
        "name": stuck.name,
        "why": stuck.why,
        "tries": stuck.tries,
        "again_ms": stuck.again,
        "aside": stuck.aside,
        "log_files": waiting.log_files,
        "log_bytes": waiting.log_bytes,
    }


def _show(output: Output, found: list[dict[str, Any]]) -> None:
    output.records(found, ["name", "aside", "tries", "why"], empty="every file slice can be compacted")
