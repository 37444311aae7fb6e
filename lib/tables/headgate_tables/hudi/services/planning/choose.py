"""Which file slices a compaction plan contains (rules TM2, DE3, W4; fact HF2). Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from headgate_tables.face.operation import Operation, PinnedFile
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.services.planning.urgency import Rules, Urgency, load_of
from headgate_tables.hudi.services.stuck import Key
from headgate_tables.hudi.timeline.instant import NEVER
from headgate_tables.hudi.view import FileSlice

_MB = 1 << 20


def choose_slices(
    slices: Iterable[FileSlice],
    settings: TableSettings,
    *,
    now: int,
    pending: Collection[Key],
    unfinished: Sequence[str],
    overdue: str = "",
    forced: bool = False,
    also: Collection[Key] = (),
) -> list[FileSlice]:
    """The latest ``slices`` that are due, the worst first, as many as ``hoodie.compaction.target.io`` allows, at least one; after
    them those that join (``Rules.joining``). ``forced``: every slice with logs, due or not, and those of ``also`` without.

    ``now``: milliseconds. ``pending``: partition and file id of slices in open plans. ``unfinished``: instants that are
    reserved or pending. ``overdue``: see ``overdue_since``.
    """
    free = _free(slices, pending, unfinished, also)
    if forced:
        return sorted(free, key=lambda part: (-part.log_bytes, part.partition, part.file_id))
    rules = Rules.at(settings, now, overdue)
    loads = [(load_of(part), part) for part in free]
    due = [(urgency, part) for load, part in loads if (urgency := rules.urgency(load)) is not None]
    if due:
        due += [(urgency, part) for load, part in loads if (urgency := rules.joining(load)) is not None]
    return _within([part for _, part in sorted(due, key=_worst_first)], settings.compaction_target_io_mb * _MB)


def _free(
    slices: Iterable[FileSlice], pending: Collection[Key], unfinished: Sequence[str], also: Collection[Key]
) -> Iterator[FileSlice]:
    # Rule DE3: logs merge by requested time, so one that is requested and not yet completed would end up on the wrong
    # side of a newer log's rows (test_a_slice_waits_while_an_instant_older_than_one_of_its_logs_is_pending).
    first = min(unfinished, default=NEVER)
    for part in slices:
        key = part.partition, part.file_id
        if key not in pending and (part.logs[-1].instant < first if part.logs else key in also):
            yield part


def _worst_first(due: tuple[Urgency, FileSlice]) -> tuple[int, float, str, str, str]:
    urgency, part = due
    return -urgency.rank, -urgency.score, part.logs[0].instant, part.partition, part.file_id


def _within(slices: Sequence[FileSlice], limit: int) -> list[FileSlice]:
    """The first slices that together read and write at most ``limit`` bytes."""
    taken: list[FileSlice] = []
    total = 0
    for part in slices:
        # Written: the base again, or for a first base file as much as the logs hold (Hudi: TOTAL_IO_MB).
        total += part.base_size + part.log_bytes + (part.base_size or part.log_bytes)
        if taken and total > limit:
            break
        taken.append(part)
    return taken


def may_be_minor(part: FileSlice, settings: TableSettings) -> bool:
    """Whether the logs are small enough beside the base file to be merged without it.

    At most half of ``headgate.compaction.log.bytes``: a larger merged log would soon make its slice due by its bytes alone. A
    slice in which nothing was written since a minor compaction, whose log has the base file's instant, gets its base file.
    """
    limit = min(settings.compaction_minor_fraction * part.base_size, settings.compaction_log_bytes / 2)
    written = any(log.instant != part.base_instant for log in part.logs)
    return part.base is not None and written and part.log_bytes <= limit


def operation_of(part: FileSlice, instant: str, *, minor: bool = False) -> Operation:
    """The slice as a plan of ``instant`` pins it; "" when the instant is not known yet. ``minor``: see ``Operation``.

    Raises ValueError for a log that completed after the instant: readers will put it on the new slice, so merging it here
    would count it twice. The view and the instant come from one moment, so there is none (rule TM2).
    """
    late = [log.name for log in part.logs if instant and log.completion >= instant]
    if late or (instant and part.base and part.base_instant >= instant):
        raise ValueError(f"the slice of {part.file_id} is newer than its plan {instant}: {late or part.base}")
    logs = tuple(PinnedFile(log.name, log.size) for log in part.logs)
    base = PinnedFile(part.base, part.base_size) if part.base else None
    merged_log = log_name(part.file_id, instant, 1, WRITE_TOKEN) if minor else ""
    return Operation(part.partition, part.file_id, base, logs, base_name(part.file_id, WRITE_TOKEN, instant), merged_log)
