"""What the slots of a log have decided, as far as the log and its format's services need to know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.records import ChannelRecord, DropRecord, GraceRecord, OwnerProcess, Savepoint, StuckRecord
from headgate_tables.commitlog.times import TimesAhead

GENESIS_HASH = "0" * 64


@dataclass(slots=True)
class LogFacts:
    """The commit log after slot ``n``; ``n`` = -1 before any. ``layout``: where the log lies, which no slot says.

    ``commits`` maps each completed instant of the active timeline to its completion time, whatever its action; ``reserved``
    holds the checkpoint instants alive now, oldest first (rule TM4); ``dead`` the dead instants whose files are not yet known to
    be gone, each with the names that a slot gave up for deletion (rule D1), or None. ``gone`` holds the other dead ones: a paused
    process may still show one of them.
    ``config``: what the table is, in the format's keys; ``settings``: what CONFIG slots set, by key.
    ``plans``: instants of open compactions with their operations as PLAN slots have them. ``refused``: outputs of operations
    that a plan was completed without; a late compactor may still create them. ``savepoints``: by saved
    instant. ``deleting``: names that a slot gave up and
    that may still be there, under a key that a later slot's ``deleted`` removes. ``archived``: every instant up to it has left
    the active timeline. ``cleaned``: the table cannot be read any more as of times before this completion time, except at
    savepoints. ``restored``: the newest restore's instant; only when it changes do channel offsets go back (rule CH8).
    ``stuck``: file slices that cannot be compacted, by name, with the format's record of each.
    ``ahead``: an operator's decision to continue above times that are ahead of the clock.
    ``grace``: the table is dropped, and can still be brought back (rule D9).
    ``dropped``: the table is none any more; no slot follows (rule D5).
    """

    layout: LogLayout
    n: int = -1
    last_hash: str = GENESIS_HASH
    epoch: int = 0
    time: str = "19700101000000000"
    owner: OwnerProcess | None = None
    config: dict[str, Json] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    commits: dict[str, str] = field(default_factory=dict)
    dead: dict[str, Sequence[str] | None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    channels: dict[str, ChannelRecord] = field(default_factory=dict)
    plans: dict[str, Sequence[Json]] = field(default_factory=dict)
    refused: dict[str, Sequence[str]] = field(default_factory=dict)
    savepoints: dict[str, Savepoint] = field(default_factory=dict)
    deleting: dict[str, Sequence[str]] = field(default_factory=dict)
    archived: str = ""
    cleaned: str = ""
    restored: str = ""
    stuck: dict[str, StuckRecord] = field(default_factory=dict)
    ahead: TimesAhead | None = None
    grace: GraceRecord | None = None
    dropped: DropRecord | None = None
    folded: int = -1

    def complete(self, instant: str, completion: str) -> None:
        """The instant has completed."""
        self.commits[instant] = completion
        self.time = max(self.time, completion)

    def redefine(self, changes: Mapping[str, Json]) -> None:
        """The table is something else from now on. A new object, by which a handle notices (``Opened.refresh``).

        Its files are others, and what still cannot be compacted will fail again. What an operator has set aside stays so.
        """
        self.config = {**self.config, **changes}
        self.stuck = {name: entry for name, entry in self.stuck.items() if entry["aside"]}

    def keep_in_savepoints(self, keys: Iterable[str]) -> None:
        """What these keys of the format have been up to here, null for one that was absent. What a savepoint has from an earlier
        change stays.
        """
        kept = {key: self.config.get(key) for key in keys}
        self.savepoints = {instant: replace(saved, config={**kept, **saved.config}) for instant, saved in self.savepoints.items()}

    def archive_until(self, until: str) -> None:
        """Every instant up to ``until`` has left the active timeline."""
        self.archived = until
        for known in (self.commits, self.gone, self.refused):
            for instant in [instant for instant in known if instant <= until]:
                del known[instant]

    def has_reserved(self, instant: str) -> bool:
        """Whether a slot reserved this instant; any other is a foreign writer's (rule F1)."""
        known = (self.commits, self.reserved, self.dead, self.gone, self.plans)
        return instant <= self.archived or any(instant in each for each in known)

    def has_completed(self, instant: str, action: str, completion: str) -> bool:
        """Whether a slot decided this completion of the instant; True for every archived one, of which the log knows no more."""
        if action == "savepoint":
            return instant in self.savepoints and self.savepoints[instant].completion == completion
        return instant <= self.archived or self.commits.get(instant) == completion

    def gives_up(self, path: str) -> bool:
        """Whether a slot has given this file up, and none says yet that it is deleted: a crash came between (rule D1)."""
        return any(path in names for names in self.deleting.values())
