"""Bugs and burdens that are planted into a service: what tests have to find, or to bear.

``support.stepping --plant NAME`` calls the one of that name in the service's process before it starts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any


def grants_at_once() -> None:
    """The duplicate check of rule CH3 is off: a channel is granted again while checkpoints that hold its older rows are
    undecided.

    The committed offset that is answered leaves those rows out, so the client sends them a second time.
    """
    from headgate_coordinator.core.channels import ChannelRegistry

    right = ChannelRegistry.end_hold

    def ended(self: ChannelRegistry, event: Any, *others: Any) -> Any:
        return right(self, replace(event, uncommitted=False), *others)

    ChannelRegistry.end_hold = ended  # type: ignore[method-assign,assignment]


def compares_nothing() -> None:
    """The owner believes what writers report (rule RO10 is off), or it would keep the rows that other bugs double or lose."""
    from headgate_coordinator.core.checkpoints import Checkpoint

    def offsets(self: Checkpoint) -> dict[str, int]:
        """Two writers may report one channel: the larger offset counts."""
        reports = [report.offsets for report in self._passed.values()]
        return {name: max(each.get(name, 0) for each in reports) for report in reports for name in report}

    Checkpoint.reconcile = lambda self: []  # type: ignore[method-assign]
    Checkpoint.offsets = property(offsets)  # type: ignore[method-assign,assignment]


def finds_no_file_false() -> None:
    """The owner does not look whether the files that writers report are there (rule RO10)."""
    from headgate_coordinator.tables.committer import Committer

    Committer._false_files = lambda self, work: {}  # type: ignore[method-assign]


def sums_nothing() -> None:
    """Writers compute no checksum of the frames between them (rule RO10): all of them have to do so alike."""
    from headgate_writer import frames

    frames.frame_checksum = lambda groups, batch: 0  # type: ignore[attr-defined]


def encodes_slowly() -> None:
    """Each writer writes 5,000 rows a second: far less than clients send."""
    from headgate_tables.hudi.change_writer import ChangeWriter

    right = ChangeWriter._encode

    def encode(self: ChangeWriter, file: Any, blocks: Any) -> Any:
        time.sleep(file.changes.rows.num_rows / 5000)
        return right(self, file, blocks)

    ChangeWriter._encode = encode  # type: ignore[method-assign]


def drops_frames() -> None:
    """A writer counts the frames of others for their barriers, and loses the rows."""
    from headgate_writer.bucket_side import BucketSide

    right = BucketSide.add_rows

    def add_rows(self: BucketSide, checkpoint: int, rows: Any, sender: str) -> None:
        if sender == self._process:
            right(self, checkpoint, rows, sender)

    BucketSide.add_rows = add_rows  # type: ignore[method-assign]


def forgets_files() -> None:
    """A writer reports all files of a flush but the last."""
    from headgate_writer.bucket_side import BucketSide

    right = BucketSide._in_executor

    async def in_executor(self: BucketSide, checkpoint: int, portion: Any) -> Any:
        written = await right(self, checkpoint, portion)
        return replace(written, statuses=written.statuses[:-1])

    BucketSide._in_executor = in_executor  # type: ignore[method-assign]


def fails_flushes() -> None:
    """Flushes of table "t" end in an error at this writer, each time."""
    _fail_flushes(at_most=None)


def fails_three_flushes() -> None:
    """The first flushes of table "t" do."""
    _fail_flushes(at_most=3)


def _fail_flushes(at_most: int | None) -> None:
    from headgate_writer.bucket_side import BucketSide

    right, failed = BucketSide._in_executor, list[str]()

    async def in_executor(self: BucketSide, checkpoint: int, portion: Any) -> Any:
        if self._attached.name == "t" and (at_most is None or len(failed) < at_most):
            failed.append("t")
            raise KeyError("planted")
        return await right(self, checkpoint, portion)

    BucketSide._in_executor = in_executor  # type: ignore[method-assign]


def excludes_briefly() -> None:
    """A writer that fails is excluded for a second."""
    from headgate_coordinator.core import failing_writers
    from headgate_tables.backoff import Backoff

    failing_writers.PAUSES = Backoff(first=1.0, longest=1.0)  # type: ignore[misc]


def folds_often() -> None:
    """The commit log is folded after 10 slots instead of 100."""
    from headgate_tables.commitlog import commit_log

    commit_log.FOLD_EVERY = 10


def keeps_beaten_rows(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Flushes of a writer keep every row, in the order of arrival, so that a test can count them without a merge.

    ``patch``: in tests of one process, a ``MonkeyPatch.setattr``, which is undone.
    """
    from headgate_tables.hudi import sift

    right = sift._ranks
    patch(sift, "_ranks", lambda batch, wanted, groups: right(batch, wanted, groups) & ~1)  # deletes have the rank of upserts
    patch(sift, "_winners", lambda batches, ranks, chosen, ordering, hashes: chosen)


ALL_ROWS: Mapping[str, tuple[str, ...]] = {"writer": (keeps_beaten_rows.__name__,)}
"""For ``Cluster``: every row that a writer took is in its files."""

UNRECONCILED: Mapping[str, tuple[str, ...]] = {
    "coordinator": (compares_nothing.__name__, finds_no_file_false.__name__),
    "writer": (sums_nothing.__name__,),
}
"""For ``Cluster``: what is left of rule RO10 are the counts of rows, some integers a frame and a report."""

PLANTS: Mapping[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        grants_at_once,
        compares_nothing,
        finds_no_file_false,
        sums_nothing,
        encodes_slowly,
        drops_frames,
        forgets_files,
        fails_flushes,
        fails_three_flushes,
        excludes_briefly,
        folds_often,
        keeps_beaten_rows,
    )
}
