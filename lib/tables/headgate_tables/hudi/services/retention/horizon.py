"""As of which commits a table stays readable (rule D3; Hudi: CleanPlanner, CleanerUtils). Pure."""

from bisect import bisect_right
from collections.abc import Collection, Sequence

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.timeline.instant import NEVER, Instant

_HOUR_MS = 3_600_000


def earliest_retained(
    commits: Sequence[Instant], settings: TableSettings, *, now: int, unfinished: Collection[str]
) -> Instant | None:
    """The oldest commit as of which the policy keeps the table readable; None when the policy names none.

    ``commits``: completed writes of the active timeline by completion time, as ``Timeline.writes`` gives them. ``now``:
    milliseconds. ``unfinished``: instants that are reserved or pending; the result is never later than the oldest of them.
    """
    if settings.clean_policy == "KEEP_LATEST_FILE_VERSIONS" or not commits:
        return None
    if settings.clean_policy == "KEEP_LATEST_COMMITS":
        index = max(0, len(commits) - settings.clean_commits)
    else:
        index = _last_before(commits, now - settings.clean_hours * _HOUR_MS)
    return _not_after(commits, index, unfinished)


def age_horizon(settings: TableSettings, now: int) -> str:
    """What a newer slice had replaced by this time was replaced at least ``headgate.clean.min.age`` ago."""
    return format_time(max(0, now - int(settings.clean_min_age * 1000)))


def _last_before(commits: Sequence[Instant], cutoff: int) -> int:
    """Index of the last commit before the cutoff, which gave the table its state at that time."""
    return max(0, bisect_right(commits, format_time(max(0, cutoff)), key=lambda commit: commit.completion) - 1)


def _not_after(commits: Sequence[Instant], index: int, unfinished: Collection[str]) -> Instant | None:
    first = min(unfinished, default=NEVER)
    return next((commits[i] for i in range(index, -1, -1) if commits[i].time < first), None)
