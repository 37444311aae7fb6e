"""`headgate table delete-partitions`: removes all rows of partitions, in one commit that reads none of them."""

from collections.abc import Sequence

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.location import locate_table, open_unowned, take_over_option
from headgate_tables.face.owner import Table


@click.command("delete-partitions", short_help="Remove all rows of partitions.")
@click.argument("table_name", metavar="TABLE")
@click.argument("partitions", metavar="PARTITION…", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--plan-only", is_flag=True, help="Show how many rows would be removed; change nothing.")
@take_over_option
@cluster_options()
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
    times until the table is cleaned, and a savepoint keeps them: `headgate savepoint TABLE`. Open compactions come first.

    A table that a cluster owns is refused. End the cluster's coordinators, add --take-over, and start them again. Rows that
    producers send later to these partitions are kept.

    \b
    Examples:
      headgate table delete-partitions ./lake/flights 2013-01 2013-02 --plan-only
      headgate table delete-partitions s3://lake/flights month=2013-01 --yes
    """  # noqa: D301 - click wants the backspace
    named = list(dict.fromkeys(each.strip("/") for each in partitions))
    with open_unowned(locate_table(table_name, access, storage), take_over=take_over) as table:
        table.check_partitions(named)
        rows = _count(table, named)
        if plan_only:
            output.print_json({"partitions": named, "rows": rows})
            output.print_text(f"{rows:,} rows would be removed.")
            return
        if not yes:
            _confirm(output, f"Remove {rows:,} rows of {table_name} ({', '.join(named)})?")
        done = table.delete_partitions(named)
    output.print_json({"partitions": named, "rows": rows, "instant": done.instant, "replaced": done.replaced})
    text = (
        f"{done.instant}: {rows:,} rows in {done.replaced:,} file groups removed." if done.completion else "No rows were there."
    )
    output.print_text(text, fg="green")


def _count(table: Table, partitions: Sequence[str]) -> int:
    """Rows of the partitions now: merged, of the key columns alone."""
    columns = list(table.definition.record_key) if table.definition else None
    return sum(batch.num_rows for batch in table.scan(columns, partitions).to_reader())


def _confirm(output: Output, question: str) -> None:
    if output.json:
        message = "with --json, delete-partitions cannot ask for confirmation"
        raise CommandError(message, fix="Add --yes.", code=ExitCode.USAGE)
    click.confirm(question, abort=True, err=True)
