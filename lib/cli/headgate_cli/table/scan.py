"""`headgate table scan`: rows of a table on the terminal, or as CSV, JSON lines, Parquet or Arrow."""

from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import click

from headgate_cli.cluster import Access
from headgate_cli.options import NAME_OR_URL, cluster_options, names, storage_option
from headgate_cli.output import Output, counted, json_option
from headgate_cli.table import storage as stored
from headgate_cli.table.export import Format, export, format_of, print_batches
from headgate_cli.table.location import locate_table
from headgate_cli.table.python_rows import python_rows


class ScanOptions(TypedDict):
    """Options of ``headgate table scan`` by click's names."""

    filters: tuple[str, ...]
    where: str | None
    partitions: tuple[str, ...]
    as_of: str | None
    since: str | None
    read_optimized: bool


@click.command("scan", short_help="Show or export rows.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--columns", help="Columns to show, in this order: column,… [all]")
@click.option("--where", metavar="SQL", help="Condition, such as \"dep_delay > 60 AND origin IN ('JFK', 'LGA')\".")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="COL=VALUE",
    help="Condition; also !=, <, <=, >, >=, and COL= for null. If repeated, all must hold.",
)
@click.option("--partition", "partitions", multiple=True, metavar="PATH", help="Read only this partition; may be repeated.")
@click.option(
    "--as-of",
    metavar="TIME",
    help="Read the table as it was then: an instant or completion time (see `table timeline`), '2026-11-22 10:00' (UTC) or "
    "'10 minutes ago'.",
)
@click.option("--since", metavar="TIME", help="Read rows of commits that completed after TIME, up to --as-of.")
@click.option("--read-optimized", is_flag=True, help="Read base files alone: fast, but as old as the last compaction.")
@click.option("--limit", type=click.IntRange(0), help="Show at most N rows; 0: all. [20; all with --output or --format]")
@click.option("--vertical", is_flag=True, help="Show each row with one column a line, all of them whole.")
@click.option("--count", is_flag=True, help="Show only the number of rows; ignores --limit.")
@click.option("--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write rows to this file; -: stdout.")
@click.option("--format", "kind", type=click.Choice(get_args(Format)), help="Form of the rows. [by the file's name]")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def scan(
    output: Output,
    /,
    table_name: str,
    columns: str | None,
    access: Access,
    storage: tuple[str, ...],
    limit: int | None,
    vertical: bool,
    count: bool,
    target: Path | None,
    kind: Format | None,
    **which: Unpack[ScanOptions],
) -> None:
    """Shows rows of TABLE, now or at a time in the past, in no particular order.

    A terminal shows as many columns as fit, and says which do not; --vertical shows all. What goes to a pipe is never cut.

    With --since, deleted rows are not shown, and the last line (with --json, --format or --output: on stderr) is the TIME for the
    next --since. A file is written beside its name and renamed when it is whole.

    \b
    Examples:
      headgate table scan flights --limit 5
      headgate table scan flights --limit 2 --vertical
      headgate table scan flights --columns id,status --where "origin = 'JFK' AND dep_delay > 60" --json
      headgate table scan flights --as-of '10 minutes ago' --output flights.parquet
      headgate table scan flights --format csv | head
      headgate table scan s3://lake/flights --count
      headgate table scan flights --since 20261121101500123 --limit 0
    """  # noqa: D301 - click wants the backspace
    kind = format_of(target, kind)
    if vertical and (kind or count or output.json):
        raise click.UsageError("--vertical shows rows to people: it does not go with --format, --output, --count and --json")
    if limit is None:
        limit = 0 if kind else 20
    chosen = names(columns or "")
    if columns is not None and not chosen:
        raise click.UsageError("--columns names none: leave it out to show all")
    found = stored.scan(locate_table(table_name, access, storage), chosen, limit=0 if count else limit, **which)
    if count:
        _count(output, sum(rows.num_rows for rows in found.batches))
    elif kind is not None:
        rows = export(found.batches, found.schema, kind, target)
        if target is not None and str(target) != "-":
            click.echo(f"{counted(rows, 'row')} to {target}", err=True)
    elif output.json:
        print_batches(found.batches)
    else:
        _show(output, [row for rows in found.batches for row in python_rows(rows)], vertical=vertical)
    if which["since"] is not None:
        to_program = output if kind is None else Output(json=True)
        to_program.print_note({"as_of": found.as_of}, f"Read on with --since {found.as_of}")


def _show(output: Output, rows: list[dict[str, Any]], *, vertical: bool) -> None:
    if not vertical:
        output.print_records(
            rows, empty="no rows", data=True, instead="Choose with --columns NAME,…, or see all with --vertical."
        )
        return
    for number, row in enumerate(rows, 1):
        output.print_text(f"row {number:,}", bold=True)
        output.print_record(row, data=True)
    if not rows:
        output.print_text("no rows")


def _count(output: Output, rows: int) -> None:
    output.print_json({"rows": rows})
    output.print_text(counted(rows, "row"))
