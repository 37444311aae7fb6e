"""`headgate bulk-load`: what is too big for one process becomes base files of a table, through Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, Unpack, get_args

import click

from headgate_cli import spark_session
from headgate_cli.bulk_load.options import SparkOptions, spark_options
from headgate_cli.bulk_load.unknown_fields import check_fields
from headgate_cli.cluster import Access
from headgate_cli.maintenance.progress import WorkBar
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, counted, json_option, size
from headgate_cli.table.location import locate_table, open_unowned, take_over_option
from headgate_cli.table.storage import Location
from headgate_tables.face.writing import LoadMode, ReadBy

if TYPE_CHECKING:
    from headgate_spark import LoadPlan, Written
    from headgate_tables.face.results import CommitResult

_AGAIN = "Nothing was loaded. Remove the cause, and run the same command again."
_MODES = (*(mode for mode in get_args(LoadMode) if mode != "delete_partition"), "upsert")


class BulkLoadOptions(SparkOptions):
    """Options of ``headgate bulk-load`` by click's names."""

    kind: str | None
    mode: LoadMode | Literal["upsert"]
    read_by: ReadBy
    plan_only: bool
    take_over: bool


@click.command("bulk-load", short_help="Load what is too big for one process, through Spark.")
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
@click.option("--table", "table_name", required=True, help="Name of the table, or its address.")
@click.option(
    "--format", "kind", help=f"Of SOURCE: {', '.join(spark_session.FORMATS)}, or any that Spark reads. [by suffix, or parquet]"
)
@click.option("--mode", type=click.Choice(_MODES), default="into_empty", show_default=True, help="What happens to present rows.")
@spark_options
@click.option(
    "--read-by",
    type=click.Choice(get_args(ReadBy)),
    default="auto",
    show_default=True,
    help="Who reads Parquet files. Arrow takes half of the CPU; auto: Arrow, where it gives the same rows and reaches the files.",
)
@click.option("--plan-only", is_flag=True, help="Show files, bytes, tasks, and who reads; change nothing.")
@take_over_option
@storage_option
@cluster_options()
@json_option
@click.pass_obj
def bulk_load(
    output: Output,
    /,
    sources: Sequence[str],
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    **options: Unpack[BulkLoadOptions],
) -> None:
    """Loads SOURCE (files or folders that Spark reads) into a table, in one commit.

    It is for what is too big for one process: a first load, a backfill, or many changes. Spark's tasks write the files. A
    task keeps the rows of its buckets in memory, three times over: give more --tasks, or more memory for each
    (--conf spark.executor.memoryOverhead=4g). One that reads Parquet files by Arrow keeps some 100 MB, up to half a GB with
    thousands of --tasks, and a row group of a file in a bucket. Needs `pip install 'headgate-cli[spark]'` and Java 17.

    \b
    --mode:
      into_empty              the table never had rows
      insert_overwrite        replaces all rows of the partitions that SOURCE has rows of, whatever their ordering values
      insert_overwrite_table  replaces all rows of the table
      upsert                  replaces rows of the same keys that do not have larger ordering values, and inserts the others

    What is replaced stays readable as of earlier times until it is cleaned, and a savepoint keeps it: `headgate savepoint TABLE`.

    Of rows of one key the one with the largest ordering value is loaded. Columns are those of the table; a CSV has them in its
    header, in the table's order. A value that cannot be read stops the load, and so does a field of JSON that the table lacks.
    Nothing is visible before the end, and a load that breaks off leaves nothing visible: run the same command again.

    JSON is read twice, the first time for the names of its fields, also with --plan-only. The driver keeps them in memory, and
    keys of maps among them. --option samplingRatio=0.01 looks at a hundredth of the rows; fields that it misses are left out.

    A table that a cluster owns is refused. End the cluster's coordinators, load with --take-over, and start them again.

    \b
    Examples:
      headgate bulk-load s3a://raw/orders --table s3://lake/orders --plan-only
      headgate bulk-load s3a://raw/orders --table s3://lake/orders --master spark://spark:7077 --tasks 200
      headgate bulk-load june.csv --table ./lake/orders --mode insert_overwrite
      headgate bulk-load s3a://raw/corrections --table s3://lake/orders --mode upsert
      headgate bulk-load old.csv --table ./lake/orders --option sep=';' --option timestampFormat='dd.MM.yyyy HH:mm'

    With --json: lines with "event": "planned", "progress" (sums of the tasks that have ended) and "loaded".
    """  # noqa: D301 - click wants the backspace
    spark_session.check_installed("a bulk load", "Files that one process can read: `headgate load`.")
    _load(output, sources, table_name, locate_table(table_name, access, storage), options)


def _load(output: Output, sources: Sequence[str], table_name: str, location: Location, options: BulkLoadOptions) -> None:
    from headgate_spark.loading import run_prepared
    from headgate_spark.planning import definition_of, plan_of, setup_of

    mode = options["mode"]
    reading, conf = spark_session.pairs("--option", options["reading"]), spark_session.pairs("--conf", options["conf"])
    with open_unowned(location, take_over=options["take_over"]) as table, spark_session.start(options["master"], conf) as spark:
        with spark_session.spark_errors(_AGAIN):
            kind = options["kind"] or spark_session.format_of(sources)
            rows = spark_session.read_source(spark, sources, kind, reading, definition_of(table).schema)
            if kind == "json" and rows.inputFiles():
                check_fields(spark_session.fields_of_json(spark, sources, reading), rows.schema, table_name)
            setup = setup_of(
                rows, table, mode, tasks=options["tasks"], storage_options=location.options, read_by=options["read_by"]
            )
            plan = plan_of(rows, table, mode, setup)
        _show_plan(output, plan)
        if options["plan_only"]:
            return
        with WorkBar(output, "loading") as bar, spark_session.spark_errors(_AGAIN):
            done = run_prepared(
                rows,
                table,
                mode,
                setup,
                storage_options=location.options,
                progress=lambda written: _show_progress(bar, written, plan.tasks),
            )
    _show_done(output, done)


def _show_plan(output: Output, plan: LoadPlan) -> None:
    output.print_json({"event": "planned", **asdict(plan)})
    share = "" if plan.bytes is None else f" of {size(plan.bytes)}, {size(plan.bytes // plan.tasks)} for a task"
    output.print_text(f"{plan.files:,} files{share}; {plan.tasks:,} tasks write.")
    output.print_text("Arrow reads them." if plan.read_by == "arrow" else f"Spark reads them: {plan.why}.")
    if plan.replaced is None:
        output.print_text("Replaces the file groups of the partitions that have rows in it.")
    elif plan.replaced:
        output.print_text(f"Replaces all {counted(plan.replaced, 'file group')} of the table.", fg="yellow")


def _show_progress(bar: WorkBar, written: Written, tasks: int) -> None:
    done = f"{counted(written.files, 'file')}, {counted(written.rows, 'row')}, {size(written.bytes)}"
    note = f"{written.tasks:,} of {counted(tasks, 'task')}, {done}"
    bar.at({**asdict(written), "of_tasks": tasks}, written.tasks, tasks, note)


def _show_done(output: Output, done: CommitResult) -> None:
    output.print_json({"event": "loaded", **asdict(done)})
    older = f", {done.superseded:,} superseded by newer rows of their keys" if done.superseded else ""
    replaced = f", {counted(done.replaced, 'file group')} replaced" if done.replaced else ""
    text = f"{counted(done.upserted, 'row')} in {counted(done.files, 'file')} ({size(done.bytes)}){older}{replaced}."
    output.print_text(f"{done.instant}: {text}" if done.completion else "There was nothing to load.", fg="green")
