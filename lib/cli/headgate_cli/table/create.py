"""`headgate table create`."""

from pathlib import Path
from typing import NotRequired, TypedDict, Unpack

import click
import pyarrow as pa

import headgate
from headgate_cli.cluster import Access
from headgate_cli.options import BUCKETS, cluster_options, names
from headgate_cli.output import Output, json_option
from headgate_cli.table.definitions import show_definition
from headgate_cli.table.schemas import schema_like, schema_of_file
from headgate_tables.opening import DEFAULT_TABLE_VERSION

DEFAULT_BUCKETS = 8


class TableOptions(TypedDict):
    """Options that define a table. ``key`` and ``partition_by``: names with commas."""

    key: str
    ordering: str
    partition_by: str
    buckets: int
    hive_style: NotRequired[bool]
    table_version: NotRequired[int]
    exist_ok: NotRequired[bool]


@click.command("create", short_help="Create a table.")
@click.argument("name")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="File with the columns (see above).")
@click.option("--like", type=click.Path(path_type=Path), help="Data file whose columns the table gets.")
@click.option("--key", required=True, help="Columns of the record key, column,…: rows of one key replace each other.")
@click.option("--ordering", default="", help="Column whose larger value wins. [the later write wins]")
@click.option("--partition-by", default="", help="Columns that name the folders, column,…: keys are unique in a folder.")
@click.option(
    "--buckets",
    default=DEFAULT_BUCKETS,
    show_default=True,
    type=BUCKETS,
    help="File groups a partition; `headgate table rescale` changes it.",
)
@click.option("--hive-style", is_flag=True, help="Name the folders column=value.")
@click.option(
    "--table-version",
    default=DEFAULT_TABLE_VERSION,
    show_default=True,
    type=click.IntRange(8, 9),
    help="Hudi's: 8 is read by Hudi 1.0 and newer, 9 by 1.1 and newer.",
)
@click.option("--exist-ok", is_flag=True, help="Succeed if a table of this name and definition exists.")
@cluster_options()
@json_option
@click.pass_obj
def create(
    output: Output, /, name: str, schema_file: Path | None, like: Path | None, access: Access, **options: Unpack[TableOptions]
) -> None:
    """Creates the table NAME.

    A schema file has a line `name type` for each column, or is a JSON object {"name": "type"}. Types: string, binary, bool,
    int32, int64, float32, float64, date, timestamp (UTC, µs), timestamp_ms, timestamp_local, decimal(P,S), and TYPE[] for lists.

    A table has no times without a zone: a column of type timestamp_local becomes one in UTC.

    \b
    Examples:
      headgate table create flights --like flights.parquet --key id --ordering updated_at --partition-by month --buckets 4
      headgate table create clicks --schema clicks.txt --key user,at --partition-by day
    """  # noqa: D301 - click wants the backspace
    if (schema_file is None) == (like is None):
        raise click.UsageError("give either --schema FILE or --like FILE")
    schema = schema_of_file(schema_file) if schema_file else schema_like(like or Path())
    with access.connect() as cluster:
        show_definition(output, create_table(cluster, name, schema, **options))


def create_table(cluster: headgate.Headgate, name: str, schema: pa.Schema, **options: Unpack[TableOptions]) -> headgate.TableInfo:
    """Creates a table and returns its definition."""
    return cluster.create_table(
        name,
        schema,
        key=names(options["key"]),
        ordering=options["ordering"] or None,
        partition_by=names(options["partition_by"]),
        buckets=options["buckets"],
        hive_style=options.get("hive_style", False),
        table_version=options.get("table_version", 0),
        exist_ok=options.get("exist_ok", False),
    ).info
