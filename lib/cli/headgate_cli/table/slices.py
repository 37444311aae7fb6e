"""`headgate table slice …`: lists file slices that cannot be compacted, sets them aside and readmits them."""

from collections.abc import Sequence

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.output import Output, Record
from headgate_tables.errors import TablesError
from headgate_tables.face.owner import StuckSlice, Table
from headgate_tables.face.results import SliceLogSize


@click.group("slice", short_help="Set file slices aside, readmit them.")
def slice_() -> None:
    """Handle file slices that cannot be compacted, mostly because one of their files is damaged."""


@slice_.command("set-aside", short_help="Refuse rows of a slice; do not compact it.")
@click.option("--comment", default="", help="The reason, for people. [the compaction's error]")
@table_command
@click.argument("slice_name", metavar="SLICE")
def set_aside(
    output: Output, /, table_name: str, slice_name: str, access: Access, storage: tuple[str, ...], comment: str
) -> None:
    """Sets the file slice SLICE (partition/file group) of TABLE aside: its rows are refused, and it is not compacted.

    Other slices are not affected. A batch with rows of SLICE is refused with SliceSetAsideError, which names these rows: the
    program keeps them and sends the others in the batch's place. Reads of the slice still fail where its files are damaged.

    \b
    Examples:
      headgate table slice list flights
      headgate table slice set-aside flights day=2026-07-11/00000003-5f0e-5a4b-9c1d-0f6f1c1c2b7a-0
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            table.set_aside(slice_name, comment)
            found = _records(table)
    else:
        found = fields_of(call_owner(access, table_name, lambda owner: owner.set_slice_aside(slice_name, comment)))["slices"]
    _show(output, found)
    output.print_text(f"{slice_name} is set aside. When its files are intact: headgate table slice readmit", fg="green")


@slice_.command(short_help="Take rows of a slice again; compact it next.")
@click.option("--accept-loss", is_flag=True, help="Go on without files of it that are gone: their rows are lost for good.")
@table_command
@click.argument("slice_name", metavar="SLICE")
def readmit(
    output: Output, /, table_name: str, slice_name: str, access: Access, storage: tuple[str, ...], accept_loss: bool
) -> None:
    """Readmits the file slice SLICE of TABLE: it accepts rows again, and is compacted next.

    First restore its damaged files from a copy, byte for byte under their own names; `headgate verify` checks them. To compact
    the slice at once, run `headgate compact`.

    Without a copy of a file that is gone, --accept-loss compacts the slice without it. Move one away first that is there, but
    damaged. The rows of both are lost; write them again if you can.

    \b
    Examples:
      headgate table slice readmit flights day=2026-07-11/00000003-5f0e-5a4b-9c1d-0f6f1c1c2b7a-0
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            table.readmit(slice_name, accept_loss=accept_loss)
            found = _records(table)
    else:
        answer = call_owner(access, table_name, lambda owner: owner.readmit_slice(slice_name, accept_loss=accept_loss))
        found = fields_of(answer)["slices"]
    _show(output, found)
    output.print_text(f"{slice_name} takes rows again.", fg="green")


@slice_.command("list", short_help="List slices that cannot be compacted.")
@table_command
def list_(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Lists the file slices of TABLE that cannot be compacted or are set aside, with the reason."""
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            found = _records(table)
    else:
        found = fields_of(call_owner(access, table_name, lambda owner: owner.list_slices()))["slices"]
    _show(output, found)


def _records(table: Table) -> Sequence[Record]:
    """The stuck slices in the form of an owner's answer (``StuckSlice`` of maintenance.proto)."""
    return [_record(stuck, waiting) for stuck, waiting in zip(table.stuck, _waiting(table), strict=True)]


def _waiting(table: Table) -> list[SliceLogSize]:
    """Log files and bytes of each stuck slice; 0 if damage prevents the count, so that the slices are listed all the same."""
    try:
        if table.stuck:
            table.file_groups()  # lists the table: figures exist only after that
        return [table.log_size_of(each) or SliceLogSize() for each in table.stuck]
    except TablesError:
        return [SliceLogSize() for _ in table.stuck]


def _record(stuck: StuckSlice, waiting: SliceLogSize) -> Record:
    return {
        "name": stuck.name,
        "why": stuck.why,
        "tries": stuck.tries,
        "again_ms": stuck.again,
        "aside": stuck.aside,
        "log_files": waiting.log_files,
        "log_bytes": waiting.log_bytes,
    }


def _show(output: Output, found: Sequence[Record]) -> None:
    output.print_records(found, ["name", "aside", "tries", "why"], empty="every file slice can be compacted")
