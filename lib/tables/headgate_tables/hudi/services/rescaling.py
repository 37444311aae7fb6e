"""Gives a table another number of buckets: its rows go into file groups of their own, in one commit (rule FI6).

A key's bucket is its hash modulo their number, so rows of an old bucket can only be in new ones that are equal to it modulo the
greatest common divisor of both numbers. Each such class of a partition is rewritten by itself. Rows keep their meta columns: they
are no news for readers of changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from headgate_tables.errors import CorruptFileError
from headgate_tables.face import owner
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.operation import Operation
from headgate_tables.face.rescaling import RescaleJob, RescaleProgress, RescaleUnit, RunUnits
from headgate_tables.face.results import RescaleResult
from headgate_tables.hudi.bulk_loads import GroupMode
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.services.compaction.rewriting import UnitRewriter
from headgate_tables.hudi.services.planning.choose import operation_of
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.view import FileSlice, FileSystemView


class Transaction(owner.Transaction, Protocol):
    """One that a rescale commits in."""

    def announce_bulk_load(self, mode: GroupMode = ..., partitions: Collection[str] = ..., buckets: int = ...) -> None:
        """See ``BulkLoad``."""


def units_of(slices: Sequence[FileSlice], before: int, after: int) -> list[RescaleUnit]:
    """Which slices go into which of ``after`` buckets, if their table has ``before``. Pure."""
    divisor = math.gcd(before, after)
    found: dict[tuple[str, int], list[Operation]] = {}
    for each in slices:
        # The operation only says what is read: its output is a name that nobody writes.
        found.setdefault((each.partition, bucket_of(each.file_id) % divisor), []).append(operation_of(each, ""))
    return [
        RescaleUnit(partition, part, range(residue, after, divisor), divisor)
        for (partition, residue), part in sorted(found.items())
    ]


def planned(definition: Definition, view: FileSystemView, buckets: int) -> RescaleResult:
    """What a rescale would do. Raises OptionError for a number that a table cannot have."""
    before = definition.buckets
    replace(definition, buckets=buckets).check()
    slices = list(view.latest_slices()) if buckets != before else []
    size = sum(each.base_size + each.log_bytes for each in slices)
    return RescaleResult("", "", before, buckets, len(slices), len(units_of(slices, before, buckets)), 0, 0, size)


def rescale(
    table: TableContext, transaction: Transaction, buckets: int, progress: RescaleProgress, run: RunUnits | None
) -> RescaleResult:
    """Rewrites all rows under the transaction's instant, and commits. ``run``: None, to do it in this thread.

    Raises TransactionError for an open compaction, or another transaction; CorruptFileError and MissingFileError for a file that
    cannot be read; RetryLater; what ``run`` raises.
    """
    before = table.definition.buckets
    transaction.announce_bulk_load("rescale", buckets=buckets)
    target = replace(table.definition, buckets=buckets, rescaled=transaction.instant, groups={})
    job = RescaleJob(table.definition, target, transaction.instant, table.stage, table.settings.to_texts())
    units = units_of(list(table.view().latest_slices()), before, buckets)
    for statuses in run(job, units) if run is not None else _rewritten(table, job, units, progress):
        if run is not None:
            _check_reported(transaction, statuses)
        transaction.add(statuses)
    done = transaction.commit({"headgate.rescale": f"{before} to {buckets} buckets"})
    return RescaleResult(
        done.instant, done.completion, before, buckets, done.replaced, len(units), done.files, done.upserted, done.bytes
    )


def _rewritten(
    table: TableContext, job: RescaleJob, units: Sequence[RescaleUnit], progress: RescaleProgress
) -> Iterable[list[WriteStatus]]:
    rewriter = UnitRewriter(table.store, job, table.layout)
    rows = done = 0
    for unit in units:
        with table.log.ending_on_failed_sync():
            statuses = rewriter.rewrite(unit, _beat(progress, rows, done))
        rows += sum(each.stat.rows for each in statuses)
        done += unit.input_bytes
        progress(rows, done)
        yield statuses


def _beat(progress: RescaleProgress, before: int, done: int) -> Callable[[int], None]:
    return lambda rows: progress(before + rows, done)


def _check_reported(transaction: Transaction, statuses: Sequence[WriteStatus]) -> None:
    for at, why in transaction.find_false(statuses).items():
        raise CorruptFileError(
            f"a task reported {statuses[at].stat.path} wrongly: {why}",
            fix="Look for what removes files there, and run the rescale again.",
        )
