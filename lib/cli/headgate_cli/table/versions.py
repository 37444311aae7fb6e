"""`headgate table upgrade` and `downgrade`: between Hudi's table versions 8 and 9."""

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner, is_address, open_address, table_command
from headgate_cli.output import Output

OLDER, NEWER = 8, 9


@click.command(short_help="Bring a table to version 9.")
@table_command
def upgrade(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Brings TABLE (a name, or an address with a slash) to Hudi's table version 9, which Hudi 1.1 and newer read.

    Rows, files and open channels stay as they are; Hudi 1.0 reads the table no more. `headgate table downgrade` undoes it.
    """
    _change(output, table_name, access, storage, NEWER)


@click.command(short_help="Bring a table back to version 8.")
@table_command
def downgrade(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Brings TABLE (a name, or an address with a slash) to Hudi's table version 8, which Hudi 1.0 and newer read.

    Rows, files and open channels stay as they are. An ordinary write of Hudi 1.1 or newer upgrades the table again; see
    `headgate table describe TABLE --for spark`.
    """
    _change(output, table_name, access, storage, OLDER)


def _change(output: Output, table_name: str, access: Access, storage: tuple[str, ...], version: int) -> None:
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            before = table.change_version(version).before
    else:
        before = call_owner(access, table_name, lambda owner: owner.change_version(version))
    output.print_json({"table": table_name, "before": before, "table_version": version})
    if before == version:
        output.print_text(f"{table_name} has version {version} already.")
    else:
        output.print_text(f"{table_name} has version {version} now; it had {before}.", fg="green")
