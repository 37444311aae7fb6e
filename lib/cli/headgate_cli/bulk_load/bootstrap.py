"""`headgate bootstrap`: a table of another kind becomes a new table by a full copy, through Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Unpack

import click

from headgate_cli import spark_session
from headgate_cli.bulk_load.options import SparkOptions, spark_options
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.progress import WorkBar
from headgate_cli.options import BUCKETS, names, storage_option, storage_settings
from headgate_cli.output import Output, counted, json_option, size
from headgate_cli.table.create import DEFAULT_BUCKETS
from headgate_tables.errors import RetryLater

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate_spark import Copied, Written
    from headgate_spark.bootstrap import CopyPlan

_AGAIN = "Steps that were committed stay. Remove the cause, and run the same command again: it copies what is not there yet."
_STEP_ROWS = 100_000_000
"""headgate_spark.bootstrap.STEP_ROWS, which --help shows without PySpark."""


class BootstrapOptions(SparkOptions):
    """Options of ``headgate bootstrap`` by click's names."""

    kind: str
    key: str
    ordering: str
    partition_by: str
    buckets: int
    step_rows: int
    plan_only: bool


@click.command("bootstrap", short_help="Copy a table of another kind, through Spark.")
@click.argument("source", metavar="SOURCE")
@click.option("--table", "url", required=True, metavar="ADDRESS", help="Folder or URL of the new table.")
@click.option(
    "--format",
    "kind",
    default="parquet",
    show_default=True,
    help="parquet, orc, hudi, delta, iceberg, any that Spark reads.",
)
@click.option("--key", required=True, help="Columns of the record key, column,…")
@click.option("--ordering", default="", help="Column whose larger value wins. [the later write wins]")
@click.option("--partition-by", default="", help="Columns that name the folders, column,…")
@click.option(
    "--buckets",
    default=DEFAULT_BUCKETS,
    show_default=True,
    type=BUCKETS,
    help="File groups a partition; `headgate table rescale` changes it.",
)
@click.option(
    "--step-rows",
    default=_STEP_ROWS,
    show_default=True,
    type=click.IntRange(1),
    help="Rows of one commit, of whole partitions. Fewer: less is repeated after a failure, and more commits.",
)
@spark_options
@click.option("--plan-only", is_flag=True, help="Count rows and partitions of SOURCE; change nothing.")
@storage_option
@json_option
@click.pass_obj
def bootstrap(output: Output, /, source: str, url: str, storage: tuple[str, ...], **options: Unpack[BootstrapOptions]) -> None:
    """Copies SOURCE, a table or folder that Spark reads, into a new table.

    It has the columns of SOURCE, but those that Hudi adds (_hoodie_*). Whole partitions are copied in one commit each time. Run
    again after it broke off, the same command copies the partitions that are not there yet. SOURCE has to stay as it is until
    the copy is complete: name one of its versions, or end its writers. If it changes while it is read, nothing of that step is
    committed.

    Of rows of one key the one with the largest ordering value is copied. Take buckets enough: a hundred thousand to some million
    rows each. Spark needs the jar of a format that is not its own. Needs `pip install 'headgate-cli[spark]'` and Java 17.

    \b
    Examples:
      headgate bootstrap s3a://raw/orders --table s3://lake/orders --key id --ordering at --partition-by day --plan-only
      headgate bootstrap s3a://old/orders --table s3://lake/orders --key id --ordering at --partition-by day \\
          --format delta --option versionAsOf=12 --conf spark.jars.packages=io.delta:delta-spark_2.12:3.3.2 \\
          --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
          --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog
      headgate bootstrap ./old --table ./lake/new --key id --format hudi --conf spark.jars=hudi-spark3.5-bundle_2.12-1.2.0.jar \\
          --conf spark.serializer=org.apache.spark.serializer.KryoSerializer

    With --json: lines with "event": "planned", "progress" (sums of the tasks that have ended) and "copied".
    """  # noqa: D301 - click wants the backspace
    spark_session.check_installed("a copy", "A Hudi table may need none: `headgate table adopt`.")
    reading, conf = spark_session.pairs("--option", options["reading"]), spark_session.pairs("--conf", options["conf"])
    with spark_session.start(options["master"], conf) as spark, spark_session.spark_errors(_AGAIN):
        rows = spark_session.read_table(spark, source, options["kind"], reading)
        if options["plan_only"]:
            _plan(output, rows, options)
        else:
            _copy(output, rows, url, storage_settings(storage), options)


def _plan(output: Output, rows: DataFrame, options: BootstrapOptions) -> None:
    from headgate_spark.bootstrap import plan_new_copy

    _show_plan(output, plan_new_copy(rows, names(options["partition_by"]), options["step_rows"]), options["buckets"])


def _copy(
    output: Output, rows: DataFrame, url: str, storage_options: Mapping[str, str] | None, options: BootstrapOptions
) -> None:
    from headgate_spark import bootstrap as run_bootstrap

    with WorkBar(output, "copying") as bar:
        steps: list[CopyPlan] = []

        def planned(plan: CopyPlan) -> None:
            steps.append(plan)
            _show_plan(output, plan, options["buckets"])

        try:
            done = run_bootstrap(
                rows,
                url,
                record_key=names(options["key"]),
                partition_by=names(options["partition_by"]),
                ordering=options["ordering"] or None,
                buckets=options["buckets"],
                step_rows=options["step_rows"],
                tasks=options["tasks"],
                storage_options=storage_options,
                planned=planned,
                progress=lambda written: _show_progress(bar, written, steps[0].rows),
            )
        except RetryLater as error:  # which says that nothing was done, of its step
            raise CommandError(error.message, fix=_AGAIN, code=ExitCode.REOPEN, kind=type(error).__name__) from error
    _show_done(output, done)


def _show_plan(output: Output, plan: CopyPlan, buckets: int) -> None:
    record = {"partitions": plan.partitions, "rows": plan.rows, "commits": len(plan.steps), "skipped": plan.skipped}
    output.print_json({"event": "planned", **record})
    skipped = f"; {plan.skipped:,} are there already" if plan.skipped else ""
    rows, partitions = counted(plan.rows, "row"), counted(plan.partitions, "partition")
    output.print_text(f"{rows} in {partitions}, in {counted(len(plan.steps), 'commit')}{skipped}.")
    if plan.partitions:
        output.print_text(f"About {counted(plan.rows // (plan.partitions * buckets), 'row')} a bucket.")


def _show_progress(bar: WorkBar, written: Written, rows: int) -> None:
    note = f"{written.rows:,} of {counted(rows, 'row')}, {counted(written.files, 'file')}, {size(written.bytes)}"
    bar.at({**asdict(written), "of_rows": rows}, written.rows, rows, note)


def _show_done(output: Output, done: Copied) -> None:
    output.print_json({"event": "copied", **asdict(done)})
    older = f", {done.superseded:,} superseded by newer rows of their keys" if done.superseded else ""
    rows, partitions = counted(done.rows, "row"), counted(done.partitions, "partition")
    text = f"{rows} in {partitions}, {counted(done.files, 'file')} ({size(done.bytes)}){older}."
    output.print_text(text if done.commits else "Everything was there already.", fg="green")
