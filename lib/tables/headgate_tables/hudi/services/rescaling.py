"""Gives a table another number of buckets: its rows go into file groups of their own, in one commit (rule FI6).

A key's bucket is its hash modulo their number, so rows of an old bucket can only be in new ones that are equal to it modulo the
greatest common divisor of both numbers. Each such class of a partition is rewritten by itself. Rows keep their meta columns: they
are no news for readers of changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate_tables.errors import CorruptFileError, OptionError
from headgate_tables.face import transaction as face
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.operation import Operation
from headgate_tables.face.rescaling import RescaleJob, RescaleProgress, RescaleUnit, RunUnits
from headgate_tables.face.results import RescaleResult
from headgate_tables.face.writing import LoadMode
from headgate_tables.hudi.bucket_rules import Rescale, Scale
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.lost_files import LostFiles
from headgate_tables.hudi.services.compaction.rewriting import UnitRewriter
from headgate_tables.hudi.services.planning.choose import operation_of
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.view import FileSlice, FileSystemView


class Transaction(face.Transaction, Protocol):
    """One that a rescale commits in."""

    def announce_bulk_load(self, mode: LoadMode = ..., partitions: Collection[str] = ..., rescale: Rescale | None = ...) -> None:
        """See ``BulkLoad``."""


def units_of(slices: Iterable[FileSlice], before: Callable[[str], int], after: int) -> list[RescaleUnit]:
    """Which slices go into which of ``after`` buckets, if their partition has ``before(partition)``. Pure."""
    found: dict[tuple[str, int, int], list[Operation]] = {}
    for each in slices:
        divisor = math.gcd(before(each.partition), after)
        # The operation only says what is read: its output is a name that nobody writes.
        key = each.partition, divisor, bucket_of(each.file_id) % divisor
        found.setdefault(key, []).append(operation_of(each, ""))
    return [
        RescaleUnit(partition, part, range(residue, after, divisor), divisor)
        for (partition, divisor, residue), part in sorted(found.items())
    ]


@dataclass(frozen=True, slots=True)
class UnownedTable:
    """What a plan looks at, which owns nothing. ``view``: gives the file slices of this moment; ``lost``: finds files that these
    lack.
    """

    definition: Definition
    view: Callable[[], FileSystemView]
    lost: LostFiles


def is_needed(definition: Definition, scale: Scale) -> bool:
    """Whether anything has to change. Raises OptionError for a number that a table cannot have, and for a pattern without
    partitions.
    """
    if scale.pattern and not definition.partition_by:
        raise OptionError("the table has no partitions", fix="Leave the partitions out: all of it gets the number.")
    scale.of(definition, "0").check()
    return not scale.is_there(definition)


def _slices(definition: Definition, view: FileSystemView, scale: Scale) -> tuple[list[FileSlice], int]:
    """What is rewritten, and the largest number of buckets that any of these partitions has."""
    slices = [each for each in view.latest_slices() if scale.is_about(each.partition)]
    return slices, max((definition.buckets_in(each.partition) for each in slices), default=definition.buckets)


def nothing_to_do(scale: Scale) -> RescaleResult:
    """Of a rescale that is not needed."""
    return RescaleResult("", "", False, scale.buckets, scale.buckets, 0, 0, 0, 0, 0)


def planned(table: UnownedTable, scale: Scale) -> RescaleResult:
    """What a rescale that is needed would do. Raises MissingFileError."""
    view = table.view()
    table.lost.check(view, scale.is_about)
    slices, before = _slices(table.definition, view, scale)
    units = units_of(slices, table.definition.buckets_in, scale.buckets)
    size = sum(each.input_bytes for each in units)
    return RescaleResult("", "", True, before, scale.buckets, len(slices), len(units), 0, 0, size, view.timeline.start)


def rescale(
    table: TableContext, transaction: Transaction, scale: Scale, progress: RescaleProgress, run: RunUnits | None, since: str
) -> RescaleResult:
    """Rewrites all rows under the transaction's instant, and commits. ``run``: None, to do it in this thread. ``since``: see
    ``LostFiles.check``.

    Raises TransactionError for an open compaction, or another transaction; CorruptFileError and MissingFileError for a file that
    cannot be read, or is gone; RetryLater; what ``run`` raises.
    """
    target = scale.of(table.definition, transaction.instant)
    # Hudi has no word for it, and what readers of the table have to know is the same.
    transaction.announce_bulk_load("insert_overwrite_table", rescale=Rescale(scale, target))
    job = RescaleJob(table.definition, target, transaction.instant, table.stage, table.settings.to_texts())
    view = table.view()
    LostFiles(table.store, table.layout.history_folder).check(view, scale.is_about, since)
    slices, before = _slices(table.definition, view, scale)
    units = units_of(slices, table.definition.buckets_in, scale.buckets)
    for statuses in run(job, units) if run is not None else _rewritten(table, job, target, units, progress):
        if run is not None:
            _check_reported(transaction, statuses)
        transaction.add(statuses)
    done = transaction.commit({"headgate.rescale": f"{scale.pattern or 'all partitions'}: {before} to {scale.buckets} buckets"})
    return RescaleResult(
        done.instant,
        done.completion,
        True,
        before,
        scale.buckets,
        done.replaced,
        len(units),
        done.files,
        done.upserted,
        done.bytes,
    )


def _rewritten(
    table: TableContext, job: RescaleJob, target: Definition, units: Sequence[RescaleUnit], progress: RescaleProgress
) -> Iterable[list[WriteStatus]]:
    rewriter = UnitRewriter(table.store, job, table.definition, target, table.layout)
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
