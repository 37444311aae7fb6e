"""`headgate load`: loads files into a table, each through a channel of its own, so that a second run resumes the first."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import click

import headgate
from headgate_cli.cluster import Access
from headgate_cli.completion import complete_files
from headgate_cli.load.creating import check_definition
from headgate_cli.load.dry_run import DryRun
from headgate_cli.load.inputs import input_files
from headgate_cli.load.loading import Loading, LoadOptions
from headgate_cli.load.plan import schema_of_files
from headgate_cli.load.reading_options import reading_options
from headgate_cli.load.waiting import WaitReason
from headgate_cli.options import BUCKETS, cluster_options, storage_option, storage_settings
from headgate_cli.output import Output, json_option
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import FORMATS, TEXT_FORMATS, format_of, open_source
from headgate_cli.table.create import DEFAULT_BUCKETS, create_table


@click.command("load", short_help="Load files into a table, exactly once.")
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files)
@click.option("--table", "table_name", required=True, help="Name of the table.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="[by suffix: .parquet .csv .tsv .jsonl .arrow …]")
@click.option("--operation-column", default="", help='Column with each row\'s operation: 1 or "upsert", 2 or "delete".')
@click.option("--delete", is_flag=True, help="Delete the rows by their keys instead of upserting them.")
@click.option("--channel", default="", help="Channel of a single file. [from its name, its content and these options]")
@click.option("--appended", is_flag=True, help="With --channel: load what was appended to the file.")
@click.option("--again", is_flag=True, help="Load files that were loaded before once more, from their first row.")
@click.option("--create", is_flag=True, help="Create the table, with the columns of the first file, if it does not exist.")
@click.option("--key", default="", help="With --create: columns of the record key, column,…")
@click.option("--ordering", default="", help="With --create: column whose larger value wins. [the later write wins]")
@click.option("--partition-by", default="", help="With --create: columns that name the folders, column,…")
@click.option("--buckets", type=BUCKETS, help=f"With --create: file groups a partition. [{DEFAULT_BUCKETS}]")
@click.option("--dry-run", is_flag=True, help="Show columns, ten rows and what would happen; change nothing.")
@reading_options
@storage_option
@cluster_options(timeout_s=60.0)
@json_option
@click.pass_obj
def load(
    output: Output,
    /,
    files: Sequence[str],
    table_name: str,
    access: Access,
    reading: ReadOptions,
    storage: tuple[str, ...],
    **options: Unpack[LoadOptions],
) -> None:
    """Loads FILES (Parquet, CSV, JSON, Avro, ORC, Arrow) into a table, exactly once.

    A folder stands for the files in it, - for stdin. Addresses (s3://, gs://, az://, https://) are copied to this machine
    first. CSV and JSON may be compressed by gzip, bzip2, xz or Zstandard.

    After a failure, run the same command again: it resumes after the last committed row and skips finished files. A file is
    recognized by its name, its content and the options that change rows; --again loads it once more. Files are read as
    streams, so they may be larger than memory.

    The delimiter of a CSV and the types of a new table are found from the whole file. What could be read in two ways (times
    without a zone, 3/4/2026, 1,234, the word NA among numbers) is refused, and the error names the option that decides.

    \b
    Examples:
      headgate load flights.parquet --table flights
      headgate load *.csv --table flights --null NA
      zcat export.tsv.gz | headgate load - --format csv --table flights
      headgate load orders.csv --table orders --create --key id --dry-run
      headgate load export.csv --table orders --encoding windows-1252 --decimal , --timezone Europe/Berlin
      headgate load flights.parquet --table flights --create --key id --ordering updated_at --partition-by month
      headgate load 's3://exports/2026/*.parquet' --table flights
      headgate load changes.jsonl --table flights --operation-column op
      headgate load gone.csv --table flights --delete

    With --json: {"event": "progress"} lines, and for each file {"event": "loaded"} with the rows sent and skipped.
    """  # noqa: D301 - click wants the backspace
    _check_options(options)
    with access.connect() as cluster, input_files(output, files, storage_settings(storage)) as inputs:
        paths = inputs.paths
        _check_files(paths, options, reading)
        reading = replace(reading, files=tuple(paths))
        if options["dry_run"]:
            DryRun(output, inputs, reading, options).show(cluster, table_name)
            return
        if options["create"]:
            _create(output, cluster, paths, table_name, reading, options)
        table = cluster.table(table_name)
        with WaitReason(access, table_name) as waits_for:
            loading = Loading(output, table, inputs, reading, waits_for, options)
            for path in paths:
                loading.load(path)


def _check_options(options: LoadOptions) -> None:
    if options["delete"] and options["operation_column"]:
        raise click.UsageError("--delete and --operation-column exclude each other")
    if options["channel"] and options["again"]:
        raise click.UsageError("--channel and --again exclude each other: a new channel loads a file again, too")
    if options["channel"].endswith(":file"):
        raise click.UsageError("--channel: names that end in :file are those of channels that remember the file of another one")
    if options["appended"] and not options["channel"]:
        raise click.UsageError("--appended goes with --channel, whose last row it goes on behind")
    if options["create"] and not options["key"]:
        raise click.UsageError("--create needs --key")


def _check_files(files: Sequence[Path], options: LoadOptions, reading: ReadOptions) -> None:
    if reading.reject_file and len(files) > 1:
        raise click.UsageError("--on-error reject:FILE goes with a single file")
    typed = any(format_of(path, options["kind"]) not in TEXT_FORMATS for path in files)
    if reading.reject_file and typed and Path(reading.reject_file).suffix != ".parquet":
        raise click.UsageError("--on-error reject:FILE: rows of Parquet, Avro, ORC and Arrow go into a FILE.parquet")
    if options["channel"] and len(files) > 1:
        raise click.UsageError("--channel goes with a single file")


def _create(
    output: Output, cluster: headgate.Headgate, files: Sequence[Path], name: str, reading: ReadOptions, options: LoadOptions
) -> None:
    if found := next((table for table in cluster.tables() if table.name == name), None):
        check_definition(found, options)
        return
    schema = schema_of_files(files, options["kind"], reading)
    for path in files:  # a load whose first rows cannot be read leaves no table
        next(open_source(path, format_of(path, options["kind"]), schema, reading).pieces(0), None)
    if options["operation_column"] in schema.names:
        schema = schema.remove(schema.get_field_index(options["operation_column"]))
    made = create_table(
        cluster,
        name,
        schema,
        key=options["key"],
        ordering=options["ordering"],
        partition_by=options["partition_by"],
        buckets=options["buckets"] or DEFAULT_BUCKETS,
        exist_ok=True,
    )
    output.print_text(f"Created {made.name} at {made.url}")
