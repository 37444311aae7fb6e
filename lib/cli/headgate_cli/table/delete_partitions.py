"""`headgate table delete-partitions`: removes all rows of partitions, in one commit that reads none of them."""

from collections.abc import Sequence

import click

from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.location import take_over_option
from headgate_cli.table.removing import Removal


@click.command("delete-partitions", short_help="Remove all rows of partitions.")
@click.argument("table_name", metavar="TABLE")
@click.argument("partitions", metavar="PARTITION…", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--plan-only", is_flag=True, help="Show how many rows would be removed; change nothing.")
@take_over_option
@cluster_options(timeout_s=60.0)
@storage_option
@json_option
@click.pass_obj
def delete_partitions(
    output: Output,
    /,
    table_name: str,
    partitions: Sequence[str],
    access: Access,
    storage: tuple[str, ...],
    yes: bool,
    plan_only: bool,
    take_over: bool,
) -> None:
    """Removes all rows of the partitions PARTITION of TABLE (a name, or an address with a slash), after counting them.

    PARTITION is a path from the table's root, as `headgate table files TABLE` shows it. The rows stay readable as of earlier
    times until the table is cleaned, and a savepoint keeps them: `headgate savepoint TABLE`.

    With a name, rows may stream in meanwhile: those that are not committed yet are kept, as are all that producers send later to
    these partitions. With an address, this process does it, after open compactions; a table that a cluster owns is refused.

    \b
    Examples:
      headgate table delete-partitions flights 2013-01 2013-02 --plan-only
      headgate table delete-partitions s3://lake/flights month=2013-01 --yes
    """  # noqa: D301 - click wants the backspace
    named = list(dict.fromkeys(each.strip("/") for each in partitions))
    Removal(output, table_name, access, storage, named).run(yes=yes, plan_only=plan_only, take_over=take_over)
