"""`headgate table …`: create, list and describe ask a coordinator; timeline, files and scan read the table's storage."""

from pathlib import Path
from typing import NotRequired, TypedDict, Unpack, get_args

import click
import pyarrow as pa

import headgate
from headgate_cli.cluster import Access
from headgate_cli.maintenance.adopt import adopt
from headgate_cli.options import NAME_OR_URL, cluster_options, names, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table import storage as stored
from headgate_cli.table.alter import alter
from headgate_cli.table.channels import channels
from headgate_cli.table.copy import copy
from headgate_cli.table.delete import delete
from headgate_cli.table.delete_partitions import delete_partitions
from headgate_cli.table.drop import drop
from headgate_cli.table.engines import show_setup
from headgate_cli.table.expire import expire
from headgate_cli.table.location import locate_table
from headgate_cli.table.rename import rename
from headgate_cli.table.scan import scan
from headgate_cli.table.schemas import schema_like, schema_of_file
from headgate_cli.table.slices import slice_
from headgate_cli.table.truncate import truncate
from headgate_cli.table.undrop import undrop
from headgate_cli.table.versions import downgrade, upgrade
from headgate_tables.face.engines import Engine
from headgate_tables.opening import DEFAULT_TABLE_VERSION


class TableOptions(TypedDict):
    """Options that define a table. ``key`` and ``partition_by``: names with commas."""

    key: str
    ordering: str
    partition_by: str
    buckets: int
    hive_style: NotRequired[bool]
    table_version: NotRequired[int]
    exist_ok: NotRequired[bool]


@click.group("table")
def table() -> None:
    """Create, inspect and read tables."""


table.add_command(adopt)
table.add_command(alter)
table.add_command(channels)
table.add_command(delete)
table.add_command(delete_partitions)
table.add_command(truncate)
table.add_command(drop)
table.add_command(undrop)
table.add_command(rename)
table.add_command(copy)
table.add_command(expire)
table.add_command(scan)
table.add_command(slice_)
table.add_command(upgrade)
table.add_command(downgrade)


@table.command("create", short_help="Create a table.")
@click.argument("name")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="File with the columns (see above).")
@click.option("--like", type=click.Path(path_type=Path), help="Data file whose columns the table gets.")
@click.option("--key", required=True, help="Columns of the record key, column,…: rows of one key replace each other.")
@click.option("--ordering", default="", help="Column whose larger value wins. [the later write wins]")
@click.option("--partition-by", default="", help="Columns that name the folders, column,…: keys are unique in a folder.")
@click.option("--buckets", default=8, show_default=True, type=click.IntRange(1), help="File groups a partition; fixed for good.")
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

    \b
    Examples:
      headgate table create flights --like flights.parquet --key id --ordering updated_at --partition-by month --buckets 4
      headgate table create clicks --schema clicks.txt --key user,at --partition-by day
    """  # noqa: D301 - click wants the backspace
    if (schema_file is None) == (like is None):
        raise click.UsageError("give either --schema FILE or --like FILE")
    schema = schema_of_file(schema_file) if schema_file else schema_like(like or Path())
    with access.connect() as cluster:
        _show(output, create_table(cluster, name, schema, **options))


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


@table.command("list", short_help="List tables.")
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


@table.command("describe", short_help="Show definition and columns.")
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
        _show(output, cluster.table(name).info)


@table.command("timeline", short_help="List instants.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(0), help="Show the newest N instants; 0: all.")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def timeline(output: Output, table_name: str, limit: int, access: Access, storage: tuple[str, ...]) -> None:
    """Lists the instants of TABLE, oldest first: completed ones with what they wrote, and pending ones.

    \b
    Examples:
      headgate table timeline flights --limit 5
      headgate table timeline s3://lake/prod/flights
    """  # noqa: D301 - click wants the backspace
    output.print_records(stored.timeline(locate_table(table_name, access, storage), limit), empty="no commits yet")


@table.command("files", short_help="List file slices.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def files(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Lists the file slices of TABLE, with base file and number of log files.

    \b
    Examples:
      headgate table files flights
      headgate table files flights --json | jq .log_files
    """  # noqa: D301 - click wants the backspace
    shown = ["partition", "file_group", "base_instant", "base_file", "logs"]
    output.print_records(stored.files(locate_table(table_name, access, storage)), shown, empty="no files yet")


def _show(output: Output, found: headgate.TableInfo) -> None:
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
        "hive_style": found.hive_style,
        "table_version": found.table_version,
        "uuid": found.uuid,
        "columns": [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in found.schema],
    }
