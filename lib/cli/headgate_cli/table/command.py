"""`headgate table …`: create, list, describe through a coordinator; timeline, files, scan from the table's own storage."""

from pathlib import Path
from typing import Any

import click
import pyarrow as pa

import headgate
from headgate_cli.cluster import Access
from headgate_cli.maintenance.adopt import adopt
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table import storage as stored
from headgate_cli.table.place import find_place
from headgate_cli.table.schemas import schema_like, schema_of_file
from headgate_cli.table.slices import slice_

_NAME_OR_URL = "TABLE is the name of a table of the cluster, or its address (s3://…, file:///…, or a path with a slash)."


@click.group("table")
def table() -> None:
    """Create tables, and look into them."""


table.add_command(adopt)
table.add_command(slice_)


@table.command("create")
@click.argument("name")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="File with the columns (see below).")
@click.option("--like", type=click.Path(path_type=Path), help="Data file whose columns the table gets.")
@click.option("--key", required=True, help="Record key: column,…; rows of one key replace each other.")
@click.option("--ordering", default="", help="Column whose larger value wins. [the later write wins]")
@click.option("--partition-by", default="", help="column,…: folders of the table; a row is known by its partition and key.")
@click.option("--buckets", default=8, show_default=True, type=click.IntRange(1), help="File groups a partition; fixed for good.")
@click.option("--hive-style", is_flag=True, help="Folders are named column=value.")
@click.option("--exist-ok", is_flag=True, help="A table of this name and definition is a success.")
@cluster_options()
@json_option
@click.pass_obj
def create(output: Output, /, name: str, schema_file: Path | None, like: Path | None, access: Access, **options: Any) -> None:
    """Creates the table NAME.

    A schema file has a line `name type` for each column, or is a JSON object {"name": "type"}. Types: string, binary, bool,
    int32, int64, float32, float64, date, timestamp (UTC, µs), timestamp_ms, timestamp_local, decimal(P,S), and TYPE[] for lists.

    \b
    Examples:
      headgate table create flights --like flights.parquet --key id --ordering updated_at --partition-by month --buckets 4
      headgate table create clicks --schema clicks.txt --key user,at --partition-by day
    """  # noqa: D301 - click wants the backspace
    if (schema_file is None) == (like is None):
        raise click.UsageError("give --schema FILE or --like FILE")
    schema = schema_of_file(schema_file) if schema_file else schema_like(like or Path())
    with access.connect() as cluster:
        _show(output, create_table(cluster, name, schema, **options))


def create_table(
    cluster: headgate.Headgate, name: str, schema: pa.Schema, *, key: str, ordering: str, partition_by: str, **options: Any
) -> headgate.TableInfo:
    """``key`` and ``partition_by``: names with commas; ``options``: those of the SDK's ``create_table``."""
    return cluster.create_table(
        name, schema, key=names(key), ordering=ordering or None, partition_by=names(partition_by), **options
    ).info


@table.command("list")
@cluster_options()
@json_option
@click.pass_obj
def list_tables(output: Output, access: Access) -> None:
    """Lists the cluster's tables."""
    with access.connect() as cluster:
        listing = cluster.listing()
    records, unreadable = [_described(found) for found in listing.tables], list(listing.unreadable)
    shown = ["name", "key", "partition_by", "ordering", "buckets", "url"]
    output.records(records, shown, empty="no tables yet: headgate table create --help")
    if unreadable:
        output.aside({"unreadable": unreadable}, f"Cannot be read now: {', '.join(unreadable)}. `headgate status` says why.")


@table.command("describe")
@click.argument("name")
@cluster_options()
@json_option
@click.pass_obj
def describe(output: Output, name: str, access: Access) -> None:
    """Shows the definition and columns of the table NAME."""
    with access.connect() as cluster:
        _show(output, cluster.table(name).info)


@table.command("timeline", epilog=_NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(0), help="The newest N instants; 0: all.")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def timeline(output: Output, table_name: str, limit: int, access: Access, storage: tuple[str, ...]) -> None:
    """Shows the commits of TABLE, oldest first: what each wrote, and what is pending."""
    output.records(stored.timeline(find_place(table_name, access, storage), limit), empty="no commits yet")


@table.command("files", epilog=_NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def files(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Shows the file slices of TABLE: base file and number of logs of each file group."""
    shown = ["partition", "file_group", "base_instant", "base_file", "logs"]
    output.records(stored.files(find_place(table_name, access, storage)), shown, empty="no files yet")


@table.command("scan", epilog=_NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--columns", default="", help="column,… in the order wanted. [all]")
@click.option(
    "--filter", "filters", multiple=True, metavar="COL=VALUE", help="Also !=, <, <=, >, >=; `col=` is null. All must hold."
)
@click.option("--partition", "partitions", multiple=True, metavar="PATH", help="Read only this partition; may be repeated.")
@click.option("--as-of", metavar="TIME", help="As the table was then: a completion time or an instant, as `table timeline` has.")
@click.option("--since", metavar="TIME", help="Only rows of commits that completed after it, and not after --as-of.")
@click.option("--read-optimized", is_flag=True, help="Base files alone: fast, and as old as the compactions.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(0), help="At most N rows; 0: all.")
@click.option("--count", is_flag=True, help="Only the number of rows (of all, whatever --limit says).")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def scan(
    output: Output, /, table_name: str, columns: str, access: Access, storage: tuple[str, ...], count: bool, **which: Any
) -> None:
    """Shows rows of TABLE as they are now, or were, in no particular order.

    With --since, deleted rows are not shown, and the last line (with --json: on stderr) says where to read on.

    \b
    Examples:
      headgate table scan flights --limit 5
      headgate table scan flights --columns id,status --filter origin=JFK --filter 'dep_delay>60' --json
      headgate table scan s3://lake/flights --count
      headgate table scan flights --since 20261121101500123 --limit 0
    """  # noqa: D301 - click wants the backspace
    place = find_place(table_name, access, storage)
    found = stored.scan(place, names(columns), **(which | {"limit": 0} if count else which))
    if count:
        _count(output, sum(rows.num_rows for rows in found.batches))
    elif output.json:
        for rows in found.batches:
            for row in rows.to_pylist():
                output.emit(row)
    else:
        output.records([row for rows in found.batches for row in rows.to_pylist()], empty="no rows", data=True)
    if which["since"] is not None:
        output.aside({"as_of": found.as_of}, f"Read on with --since {found.as_of}")


def names(text: str) -> list[str]:
    """``a, b`` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(output: Output, rows: int) -> None:
    output.emit({"rows": rows})
    output.say(f"{rows:,} rows")


def _show(output: Output, found: headgate.TableInfo) -> None:
    record = _described(found)
    output.emit(record)
    if not output.json:
        columns = record.pop("columns")
        output.record(record)
        output.say("")
        output.table(["column", "type", "nullable"], [[c["name"], c["type"], c["nullable"]] for c in columns])


def _described(found: headgate.TableInfo) -> dict[str, Any]:
    return {
        "name": found.name,
        "url": found.url,
        "key": list(found.key),
        "partition_by": list(found.partition_by),
        "ordering": found.ordering,
        "buckets": found.buckets,
        "hive_style": found.hive_style,
        "uuid": found.uuid,
        "columns": [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in found.schema],
    }
