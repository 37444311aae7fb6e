"""Chooses data files that nobody needs any more (rule D3; Hudi: CleanPlanner). Pure.

What a reader as of a completion time P needs of a group: the newest base file that had completed by P, and the logs that
had, from that base's instant on. So the files of a slice are needed until a base file with a later instant has completed, and
a whole slice goes or stays. A base file whose instant completed late lies above logs that readers as of an earlier
time read on the base below; those hold both slices.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from headgate_tables.face.operation import Plan
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.horizon import age_horizon, earliest_retained
from headgate_tables.hudi.timeline.instant import NEVER, Instant
from headgate_tables.hudi.view import FileGroup, FileSlice


@dataclass(frozen=True, slots=True)
class Cleanable:
    """``files``: paths by partition, from the table's root; ``bytes``: of all these. ``earliest``: the table stays readable as
    of its completion time and later; None when nothing goes. ``kept``: how many files are old enough, but stay for a
    savepoint, a reader or a plan.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    earliest: Instant | None = None
    bytes: int = 0
    kept: int = 0

    @property
    def paths(self) -> list[str]:
        """Paths of all files."""
        return [path for paths in self.files.values() for path in paths]


@dataclass(frozen=True, slots=True)
class References:
    """What keeps slices besides the policy: completion times as of which someone reads, and files that plans pin."""

    points: Sequence[str]
    pinned: Collection[tuple[str, str]]

    @classmethod
    def of(cls, savepoints: Iterable[str], leases: Iterable[str], plans: Iterable[Plan]) -> "References":
        """``savepoints`` and ``leases``: completion times."""
        operations = (operation for plan in plans for operation in plan.operations)
        pinned = {
            (each.partition, file.name) for each in operations for file in (*each.logs, *((each.base,) if each.base else ()))
        }
        return cls(sorted({*savepoints, *leases}), pinned)

    def keep(self, part: FileSlice, begun: str, replaced: str) -> bool:
        """Whether anything but the policy needs a slice that could be read from ``begun`` until before ``replaced``."""
        if any(begun <= point < replaced for point in self.points):
            return True
        return bool(self.pinned) and any((part.partition, name) in self.pinned for name in part.names)


def choose_dead_files(
    groups: Iterable[FileGroup],
    commits: Sequence[Instant],
    settings: TableSettings,
    *,
    now: int,
    completion_of: Callable[[str], str | None],
    replaced: Iterable[tuple[FileGroup, str]] = (),
    unfinished: Collection[str] = (),
    savepoints: Iterable[str] = (),
    leases: Iterable[str] = (),
    plans: Iterable[Plan] = (),
    cleaned: str = "",
) -> Cleanable:
    """Files of old slices of the live ``groups`` and of ``replaced`` ones (with the completion time of what replaced them).

    ``commits``: completed writes of the active timeline, by completion time. ``now``: milliseconds. ``completion_of``: of any
    instant in a file's name, archived ones too (None: its own time). ``cleaned``: older slices went before.
    """
    horizon = _horizon(commits, settings, now, unfinished, cleaned)
    if not horizon:
        return Cleanable()
    by_versions = settings.clean_policy == "KEEP_LATEST_FILE_VERSIONS"
    references = References.of(savepoints, leases, plans)
    chosen = _Chosen({}, cleaned)
    for group, end in (*((group, NEVER) for group in groups), *replaced):
        versions = 0 if end != NEVER else settings.clean_versions if by_versions else 1
        _choose_of(group, end, horizon, completion_of, references, versions, chosen)
    # By file versions every group goes back as far as it can: all are readable from where the youngest removed slice ended.
    earliest = _as_of(commits, chosen.latest if by_versions else max(horizon, cleaned))
    return Cleanable(chosen.files, earliest, chosen.bytes, chosen.kept)


def _horizon(commits: Sequence[Instant], settings: TableSettings, now: int, unfinished: Collection[str], cleaned: str) -> str:
    """The completion time as of which, and later, policy and age keep everything; "": nothing may go yet."""
    by_age = age_horizon(settings, now)
    if settings.clean_policy == "KEEP_LATEST_FILE_VERSIONS":
        return by_age
    by_policy = earliest_retained(commits, settings, now=now, unfinished=unfinished)
    return min(by_age, max(by_policy.completion, cleaned)) if by_policy is not None else ""


def _as_of(commits: Sequence[Instant], point: str) -> Instant | None:
    """The commit that gave the table its state at that time; what replaces slices is itself among the commits."""
    index = bisect_right(commits, point, key=lambda commit: commit.completion) - 1
    return commits[max(0, index)] if commits else None


@dataclass(slots=True)
class _Chosen:
    files: dict[str, list[str]]
    latest: str
    bytes: int = 0
    kept: int = 0


def _choose_of(
    group: FileGroup,
    end: str,
    horizon: str,
    completion_of: Callable[[str], str | None],
    references: References,
    versions: int,
    chosen: _Chosen,
) -> None:
    """Goes from the newest slice to the oldest. ``end``: when the whole group was replaced."""
    for age, (part, replaced) in enumerate(group.newest_first(completion_of, end)):
        if age >= versions and replaced <= horizon:
            based = [completion_of(part.base_instant) or part.base_instant] if part.base else []
            begun = min([*based, *(log.completion for log in part.logs)])
            names = part.names
            if references.keep(part, begun, replaced):
                chosen.kept += len(names)
            else:
                chosen.files.setdefault(part.partition, []).extend(map(part.path, names))
                chosen.bytes += part.base_size + part.log_bytes
                chosen.latest = max(chosen.latest, replaced)
