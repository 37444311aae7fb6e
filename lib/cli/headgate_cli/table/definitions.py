"""`headgate table list` and `describe`: which tables there are, and how they are defined."""

from typing import get_args

import click

import headgate
from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.engines import show_setup
from headgate_cli.table.location import locate_table
from headgate_tables.face.engines import Engine


@click.command("list", short_help="List tables.")
@click.option("--dropped", is_flag=True, help="List those that `undrop` can bring back, instead.")
@cluster_options()
@json_option
@click.pass_obj
def list_tables(output: Output, access: Access, dropped: bool) -> None:
    """Lists the tables of the cluster.

    \b
    Examples:
      headgate table list
      headgate table list --json | jq -r .url
      headgate table list --dropped
    """  # noqa: D301 - click wants the backspace
    with access.connect() as cluster:
        listing = cluster.listing()
    if dropped:
        found = [{"name": each.name, "dropped": each.at, "by": each.by, "until": each.until} for each in listing.dropped]
        shown_times = [{key: str(value) for key, value in each.items()} for each in found]
        output.print_records(shown_times, empty="no table can be brought back")
        return
    records, unreadable = [_described(found) for found in listing.tables], list(listing.unreadable)
    shown = ["name", "key", "partition_by", "ordering", "buckets", "url"]
    output.print_records(records, shown, empty="no tables yet: headgate table create --help")
    if unreadable:
        output.print_note({"unreadable": unreadable}, f"Cannot be read now: {', '.join(unreadable)}. `headgate status` says why.")


@click.command("describe", short_help="Show definition and columns.")
@click.argument("name")
@click.option(
    "--for",
    "engine",
    type=click.Choice(get_args(Engine)),
    help="Show with which statement, settings and options this engine reads and writes the table.",
)
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def describe(output: Output, name: str, engine: Engine | None, access: Access, storage: tuple[str, ...]) -> None:
    """Shows the definition and columns of the table NAME.

    With --for it reads the table's storage, NAME may be an address, and the output is a script: another program that writes with
    other settings doubles keys, changes the table's version or hides rows from readers.

    \b
    Examples:
      headgate table describe flights
      headgate table describe flights --for spark > flights.sql
    """  # noqa: D301 - click wants the backspace
    if engine is not None:
        with locate_table(name, access, storage).open() as table:
            show_setup(output, table.setup_of(engine))
        return
    with access.connect() as cluster:
        show_definition(output, cluster.table(name).info)


def show_definition(output: Output, found: headgate.TableInfo) -> None:
    """Prints a table's definition and columns."""
    record = _described(found)
    output.print_json(record)
    if not output.json:
        del record["columns"]
        output.print_record(record)
        output.print_text("")
        columns = [[field.name, str(field.type), field.nullable] for field in found.schema]
        output.print_table(["column", "type", "nullable"], columns)


def _described(found: headgate.TableInfo) -> dict[str, object]:
    return {
        "name": found.name,
        "url": found.url,
        "key": list(found.key),
        "partition_by": list(found.partition_by),
        "ordering": found.ordering,
        "buckets": found.buckets,
        "partition_buckets": dict(found.partition_buckets),
        "hive_style": found.hive_style,
        "table_version": found.table_version,
        "uuid": found.uuid,
        "columns": [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in found.schema],
    }
