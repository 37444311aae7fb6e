"""`headgate table adopt`: adopts what another program did to a table."""

from dataclasses import fields
from typing import NamedTuple

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.target import call_owner, is_address, open_address, table_command
from headgate_cli.options import BUCKETS
from headgate_cli.output import Output
from headgate_tables.face.results import AdoptResult

_LABELS = {
    "completed": "instants adopted",
    "removed": "instants that the other program removed",
    "plans": "pending compactions adopted",
    "finished_plans": "compactions that the other program finished",
    "rolled_back": "pending writes rolled back",
    "archived": "instants that the other program archived",
    "savepoints": "savepoints adopted",
}


class AdoptOptions(NamedTuple):
    """What the options ask for. ``buckets``: None for as many as the table says."""

    buckets: int | None
    roll_back: bool
    remove_metadata_table: bool


@click.command("adopt", short_help="Adopt another program's changes.")
@click.option("--buckets", type=BUCKETS, help="Buckets of a table made by another program, which does not store it.")
@click.option("--roll-back", is_flag=True, help="Roll back the other program's unfinished writes.")
@click.option("--remove-metadata-table", is_flag=True, help="Drop the metadata table that the other program made.")
@click.option("--future-times", is_flag=True, help="Allow commits above times that a wrong clock set in the future.")
@table_command
def adopt(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    buckets: int | None,
    roll_back: bool,
    remove_metadata_table: bool,
    future_times: bool,
) -> None:
    """Adopts what another program did to TABLE, so that the table takes rows again.

    A table that Spark or another writer wrote to is quarantined: it can be read but not written, and `headgate status` says why.
    Read its timeline, make sure that the other program has stopped, then adopt. The other program's commits become the table's
    own, and its pending compactions are done here. Its unfinished writes are refused; --roll-back rolls them back. A metadata
    table, which Spark makes by default, is refused: readers that trust it miss new rows. --remove-metadata-table drops it.

    A table of another program (version 8 or 9, bucket index) whose folder lies in the store becomes a table of the cluster: give
    the folder's name and --buckets.

    --future-times adopts nothing. It is for a table whose times are ahead of the clock ("the table has already issued …"): new
    commits get times just above the newest one, until real time has caught up. Readers see commits in the right order; see "Times
    in the future" in operations.md.

    \b
    Examples:
      headgate table timeline flights
      headgate table adopt flights
      headgate table adopt old-flights --buckets 16
      headgate table adopt s3://lake/old-flights --buckets 16
    """  # noqa: D301 - click wants the backspace
    if future_times and (buckets or roll_back or remove_metadata_table):
        raise CommandError(
            "--future-times adopts nothing, so --buckets, --roll-back and --remove-metadata-table do not go with it",
            fix="Give it alone, and adopt with a second command.",
            code=ExitCode.USAGE,
        )
    if future_times:
        _go_on(output, table_name, access, storage)
        return
    _adopt(output, table_name, access, storage, AdoptOptions(buckets, roll_back, remove_metadata_table))


def _adopt(output: Output, table_name: str, access: Access, storage: tuple[str, ...], wanted: AdoptOptions) -> None:
    done: object  # an AdoptResult, or the owner's answer with its fields
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            done = table.adopt(**wanted._asdict())
    else:
        done = call_owner(access, table_name, lambda owner: owner.adopt(**wanted._asdict()))
    record = {field.name: list(getattr(done, field.name)) for field in fields(AdoptResult)}
    output.print_json(record)
    for name, what in _LABELS.items():
        if record[name]:
            output.print_text(f"{len(record[name]):,} {what}: {', '.join(record[name])}")
    adopted = any(record.values()) or wanted.remove_metadata_table
    output.print_text(f"{table_name} takes rows{'' if adopted else '; nothing had to be adopted'}.", fg="green")


def _go_on(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            floor = table.accept_future_times()
    else:
        floor = call_owner(access, table_name, lambda owner: owner.accept_future_times())
    output.print_json({"goes_on_from": floor})
    text = f"{table_name} takes commits again, from {floor} on." if floor else "No time of the table is ahead of the clock."
    output.print_text(text, fg="green")
