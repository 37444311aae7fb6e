"""`headgate table rescale`: another number of buckets, in one commit that rewrites all rows."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from headgate.maintenance import Maintenance
from headgate_cli import spark_session
from headgate_cli.cluster import Access
from headgate_cli.durations import DURATION, MILLISECOND
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.progress import WorkBar
from headgate_cli.maintenance.target import call_owner, is_address, table_command
from headgate_cli.options import BUCKETS
from headgate_cli.output import Output, counted, size
from headgate_cli.table.location import locate_table, open_unowned, take_over_option
from headgate_cli.table.storage import Location
from headgate_runtime.world import World
from headgate_tables.errors import DeposedError
from headgate_tables.face.owner import Table
from headgate_tables.face.results import RescaleResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate_spark import Written


@click.command("rescale", short_help="Give a table another number of buckets.")
@click.option("--buckets", required=True, type=BUCKETS, help="File groups that a partition has from then on.")
@click.option(
    "--partitions",
    default="",
    metavar="PATTERN",
    help="Only those of these paths, and those that come; * is any text but a slash. [all]",
)
@click.option("--plan-only", is_flag=True, help="Show what would be rewritten; change nothing.")
@click.option(
    "--longest-pause",
    type=DURATION,
    default="1m",
    show_default=True,
    help="How long a cluster's table may take no rows; longer, and it stays as it is.",
)
@spark_session.session_options("Spark's master (spark://…, k8s://…), whose tasks do the work. [this process]")
@take_over_option
@table_command
def rescale(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    buckets: int,
    partitions: str,
    plan_only: bool,
    longest_pause: timedelta,
    master: str | None,
    conf: tuple[str, ...],
    take_over: bool,
) -> None:
    """Spreads the rows of TABLE over another number of buckets.

    A bucket is one file group of a partition: a hundred thousand to some million rows are a good size. All rows are read, merged
    and written once; readers go on, and see the rows once, before and after. Rows stay as they are, so readers of changes see
    nothing new. The files of before go with a later cleaning.

    This process does it, in the table's storage, with the memory of a compaction; or with --master Spark's tasks, which takes
    `pip install 'headgate-cli[spark]'` and Java 17. TABLE is a name: its owner lends the table, and takes no rows meanwhile;
    producers wait, and go on by themselves. Compact it first (`headgate compact`), and that is shorter. Or TABLE is an address
    with a slash, of a table that nobody else writes. Hudi's own writers need the new number, too (`headgate table describe --for
    spark` prints how).

    \b
    Examples:
      headgate table rescale flights --buckets 32 --plan-only
      headgate table rescale flights --buckets 32 --longest-pause 10m
      headgate table rescale flights --buckets 64 --partitions '2027-*'
      headgate table rescale s3://lake/flights --buckets 32 --storage region=eu-west-1
      headgate table rescale s3://lake/flights --buckets 512 --master spark://spark:7077

    With --json: lines with "event": "planned", "progress" (rows written, bytes done; with --master sums of the tasks that have
    ended) and "rescaled".
    """  # noqa: D301 - click wants the backspace
    if take_over and not is_address(table_name):
        raise click.UsageError("--take-over goes with a table's address: its coordinators have ended, and know no name")
    if conf and master is None:
        raise click.UsageError("--conf goes with --master: without it there is no Spark")
    if master is not None:
        spark_session.check_installed("a rescale with --master", "Leave --master out: this process does it.")
    location = locate_table(table_name, access, storage)
    with location.open() as table:
        planned = table.rescale(buckets, partitions=partitions, plan_only=True)
    _show_plan(output, planned)
    if plan_only or not planned.needed:
        return
    with _session(master, conf) as spark, WorkBar(output, "rescaling") as bar:
        work = _Work(bar, location, planned, partitions, spark)
        if is_address(table_name):
            done, pause_s = work.run(take_over=take_over), 0.0
        else:
            done, pause_s = call_owner(access, table_name, lambda owner: _while_lent(owner, longest_pause // MILLISECOND, work))
    _show_done(output, done, pause_s)


def _session(master: str | None, conf: tuple[str, ...]) -> AbstractContextManager[SparkSession | None]:
    """Spark's; None without a master."""
    return spark_session.start(master, spark_session.pairs("--conf", conf)) if master is not None else nullcontext()


class _Work:
    """The rescale, in this process or by the tasks of ``spark``."""

    def __init__(
        self, bar: WorkBar, location: Location, planned: RescaleResult, partitions: str, spark: SparkSession | None
    ) -> None:
        self._bar = bar
        self._location = location
        self._planned = planned
        self._partitions = partitions
        self._spark = spark
        self._stopped = False

    def run(self, *, take_over: bool, lent_by: int = 0) -> RescaleResult:
        """``lent_by``: epoch of the owner that lends the table. Raises TablesError; CommandError, also when the loan is over."""
        with open_unowned(self._location, take_over=take_over) as table:
            if lent_by and table.own() != lent_by + 1:
                raise DeposedError("the loan is over", fix="Run the same again.")
            if self._spark is not None:
                return self._run_tasks(self._spark, table)
            planned = self._planned
            return table.rescale(planned.buckets, partitions=self._partitions, progress=self._show, planned=planned)

    def _run_tasks(self, spark: SparkSession, table: Table) -> RescaleResult:
        from headgate_spark import rescale as rescale_on_spark

        with spark_session.spark_errors("Nothing has changed. Remove the cause, and run the same command again."):
            return rescale_on_spark(
                spark,
                table,
                self._planned.buckets,
                partitions=self._partitions,
                storage_options=self._location.options,
                progress=self._show_tasks,
                planned=self._planned,
            )

    def stop(self) -> None:
        """Ends ``run``, on another thread, before it commits."""
        self._stopped = True

    def _show(self, rows: int, done: int) -> None:
        if self._stopped:
            raise KeyboardInterrupt
        total = self._planned.bytes
        self._bar.at({"rows": rows, "bytes_done": done, "bytes": total}, done, total, counted(rows, "row"))

    def _show_tasks(self, written: Written) -> None:
        record = {"tasks": written.tasks, "of_tasks": self._planned.units, "rows": written.rows, "files": written.files}
        note = f"{written.tasks:,} of {counted(self._planned.units, 'task')}, {counted(written.rows, 'row')}"
        self._bar.at(record, written.tasks, self._planned.units, note)


async def _while_lent(owner: Maintenance, longest_ms: int, work: _Work) -> tuple[RescaleResult, float]:
    """What was done, and for how many seconds the table took no rows."""
    clock = World.real().clock
    began = clock.monotonic()
    try:
        async with owner.lend(longest_ms) as lent:
            done = await asyncio.to_thread(work.run, take_over=True, lent_by=lent.epoch)
    except CommandError as ended:
        if ended.kind != DeposedError.__name__:
            raise
        raise _loan_over(longest_ms, clock.monotonic() - began) from ended
    finally:
        work.stop()
    return done, clock.monotonic() - began


def _loan_over(longest_ms: int, lent_s: float) -> CommandError:
    """``lent_s``: seconds from the request to the end of the work."""
    if lent_s * 1000 >= longest_ms:
        what = f"the table was lent for {longest_ms / 1000:g} s, and it took longer"
        fix = "Compact the table first (`headgate compact`), which takes no pause, or give a longer --longest-pause."
    else:
        what = f"the table got another owner within {lent_s:.1f} s, before the rescale was done"
        fix = "Run the same again."
    return CommandError(f"{what}: nothing has changed", fix=fix, code=ExitCode.OPERATOR, kind="LoanOver")


def _show_plan(output: Output, planned: RescaleResult) -> None:
    said = {"before": planned.before, "buckets": planned.buckets, "file_groups": planned.replaced, "units": planned.units}
    output.print_json({"event": "planned", **said, "bytes": planned.bytes})
    if not planned.needed:
        output.print_text(f"The partitions have {planned.buckets:,} buckets already.")
        return
    if not planned.replaced:
        output.print_text(f"No partition has rows to rewrite; those that come have {planned.buckets:,} buckets.")
        return
    groups = f"{counted(planned.replaced, 'file group')}, {size(planned.bytes)}"
    buckets, tasks = counted(planned.buckets, "bucket"), counted(planned.units, "task")
    output.print_text(f"{groups}, from {planned.before:,} to {buckets} a partition; {tasks}.")


def _show_done(output: Output, done: RescaleResult, pause_s: float) -> None:
    said = {"instant": done.instant, "rows": done.rows, "files": done.files, "bytes": done.bytes, "pause_s": round(pause_s, 3)}
    output.print_json({"event": "rescaled", "buckets": done.buckets, **said})
    written = f"{counted(done.rows, 'row')} in {counted(done.files, 'file')}, {size(done.bytes)}"
    output.print_text(f"{written}, {counted(done.buckets, 'bucket')}.", fg="green")
    if pause_s:
        output.print_text(f"The table took no rows for {pause_s:.1f} s.")
