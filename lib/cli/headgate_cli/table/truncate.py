"""`headgate table truncate`: removes all rows of a table, in one commit that reads none of them."""

import click

from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.location import take_over_option
from headgate_cli.table.removing import Removal


@click.command("truncate", short_help="Remove all rows.")
@click.argument("table_name", metavar="TABLE")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--plan-only", is_flag=True, help="Show how many rows would be removed; change nothing.")
@take_over_option
@cluster_options(timeout_s=60.0)
@storage_option
@json_option
@click.pass_obj
def truncate(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    yes: bool,
    plan_only: bool,
    take_over: bool,
) -> None:
    """Removes all rows of TABLE (a name, or an address with a slash), after counting them. Columns, settings and channels stay.

    The rows stay readable as of earlier times until the table is cleaned, and a savepoint keeps them: `headgate savepoint TABLE`.
    With a name, rows may stream in meanwhile: those that are not committed yet are kept, and channels go on with their offsets.

    \b
    Examples:
      headgate table truncate flights --plan-only
      headgate table truncate s3://lake/flights --yes
    """  # noqa: D301 - click wants the backspace
    removal = Removal(output, table_name, access, storage, ())
    removal.run(yes=yes, plan_only=plan_only, take_over=take_over)
