"""Counts and bytes of the logs of one live slice, updated file by file."""

from dataclasses import dataclass, field

from headgate_tables.hudi.services.planning.urgency import Load
from headgate_tables.hudi.services.retention.archiving import straddles
from headgate_tables.hudi.timeline.instant import NEVER


@dataclass(slots=True)
class LogLoad:
    """Delta commits, files and bytes of some logs; instants of the oldest and of the newest."""

    commits: int = 0
    files: int = 0
    bytes: int = 0
    oldest: str = NEVER
    newest: str = ""

    def add(self, instant: str, size: int) -> None:
        """Adds a log. Commits come in the order of their instants (rule RO2)."""
        if instant != self.newest:
            self.commits += 1
            self.newest = max(self.newest, instant)
            self.oldest = min(self.oldest, instant)
        self.files += 1
        self.bytes += size

    def merge(self, other: "LogLoad") -> None:
        """Adds logs, all of other commits."""
        self.commits += other.commits
        self.files += other.files
        self.bytes += other.bytes
        self.oldest = min(self.oldest, other.oldest)
        self.newest = max(self.newest, other.newest)


@dataclass(slots=True)
class SliceLoad:
    """``logs``: those in no open plan; ``planned``: those in an open plan, None without one."""

    base_instant: str = ""
    base_size: int = 0
    logs: LogLoad = field(default_factory=LogLoad)
    planned: LogLoad | None = None

    @property
    def unplanned(self) -> Load:
        """What a plan made now would contain."""
        logs = self.logs
        return Load(logs.commits, logs.files, logs.bytes, logs.oldest, self.base_instant, self.base_size)

    @property
    def files(self) -> int:
        """Number of all logs."""
        return self.logs.files + (self.planned.files if self.planned else 0)

    @property
    def bytes(self) -> int:
        """Bytes of all logs."""
        return self.logs.bytes + (self.planned.bytes if self.planned else 0)

    @property
    def straddler(self) -> str:
        """See ``Load.straddler``; planned logs count as long as the plan is open."""
        oldest = min(self.planned.oldest, self.logs.oldest) if self.planned else self.logs.oldest
        return oldest if self.files and straddles(oldest, self.base_instant) else ""

    def compacted(self, instant: str, size: int, log_size: int) -> None:
        """Notes that the plan of ``instant`` is done: its logs are in the new base file, newer ones lie on it. ``log_size``: of
        the log file that a minor compaction made, 0 after another; it is older than those (rule DE5).
        """
        self.base_instant, self.base_size, self.planned = instant, size, None
        if log_size:
            merged = LogLoad()
            merged.add(instant, log_size)
            merged.merge(self.logs)
            self.logs = merged

    def given_up(self) -> None:
        """Notes that the plan was cancelled, or dropped its operation on this slice."""
        if self.planned is not None:
            self.planned.merge(self.logs)
            self.logs, self.planned = self.planned, None
