"""What happens to the cluster, in which order and to whom: it follows from a seed and the length of the run alone."""

import enum
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SLOT_S = 22.5
"""From one strike to the next in a long run: what most faults last, and time to come back. A short run is denser."""
KILLED_TOO = 0.5
"""Share of the strikes in which a process is killed as well."""


class Kind(enum.Enum):
    """One kind of fault, and how it shows."""

    REDIS_FORGETS = "Redis loses everything each 0.4 s"
    REDIS_TWICE = "Redis is killed twice, 1.5 s apart"
    STORE_DENIES = "the store is read-only"
    STORE_FORBIDS = "S3 answers 403"
    DISK_FULL = "the disk is full"
    NO_FILES = "a process may open no more files"
    CLOCK_AHEAD = "a coordinator's clock is ahead"
    DAMAGED_SLICE = "a byte of a log file is flipped, and later flipped back"
    OVERLOAD = "a producer sends as fast as it can"
    STARVED = "other programs take the processors"
    PAUSED = "a process stands still"
    COORDINATORS_ROLL = "each coordinator is restarted in turn"
    WRITERS_ROLL = "each writer is restarted in turn"
    FOLDER_REMOVED = "the folder of another table is removed"
    FOLDER_MOVED = "the table's folder is moved away, and later back"
    SLICE_SET_ASIDE = "a damaged slice is set aside, and readmitted when it is repaired"
    FUTURE_TIMES = "the table's times are in the future, until an operator goes on above them"


_OF_DISKS = {Kind.STORE_DENIES, Kind.FOLDER_MOVED}
"""S3 has no folders that somebody could move: what is put there meanwhile is there."""
_OF_S3 = {Kind.STORE_FORBIDS}
KINDS: Mapping[str, Sequence[Kind]] = {
    "local": [kind for kind in Kind if kind not in _OF_S3],
    "s3": [kind for kind in Kind if kind not in _OF_DISKS],
}
"""What can come over a store."""


SECONDS = {
    Kind.REDIS_FORGETS: 5.0,
    Kind.REDIS_TWICE: 1.5,
    Kind.STORE_DENIES: 12.0,
    Kind.STORE_FORBIDS: 6.0,
    Kind.DISK_FULL: 6.0,
    Kind.NO_FILES: 6.0,
    Kind.CLOCK_AHEAD: 4.0,
    Kind.DAMAGED_SLICE: 10.0,
    Kind.OVERLOAD: 8.0,
    Kind.STARVED: 8.0,
    Kind.PAUSED: 7.0,
    Kind.COORDINATORS_ROLL: 0.0,
    Kind.WRITERS_ROLL: 0.0,
    Kind.FOLDER_REMOVED: 1.0,
    Kind.FOLDER_MOVED: 6.0,
    Kind.SLICE_SET_ASIDE: 8.0,
    Kind.FUTURE_TIMES: 0.0,
}
"""How long each lasts; 0: as long as it takes. Of a slice: how long it is set aside."""
OWNER = "the table's owner"
"""A part that is known only when the strike comes."""
AHEAD_S = (3600.0, 86_400.0, 400 * 86_400.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """Names of the processes that faults may choose from."""

    coordinators: Sequence[str]
    writers: Sequence[str]
    compactors: Sequence[str]
    producers: Sequence[str]

    @property
    def services(self) -> list[str]:
        return [*self.coordinators, *self.writers, *self.compactors]

    @property
    def killable(self) -> list[str]:
        return [*self.services, "redis", *self.producers]


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault. ``at``: seconds from the run's start, at the earliest. ``part``: whom it meets, where it meets one.

    ``kill``: who is killed with -9 and started again ``kill_after`` seconds after it began; "" for nobody. ``choice``: a number
    for what else the fault has to choose.
    """

    at: float
    kind: Kind
    part: str
    kill: str
    kill_after: float
    choice: int

    def __str__(self) -> str:
        killed = f"; kill -9 {self.kill} after {self.kill_after:.1f} s" if self.kill else ""
        return f"{self.kind.value}{f' ({self.part})' if self.part else ''}{killed}"


def strikes(seed: int, minutes: float, parts: Parts, kinds: Sequence[Kind]) -> Iterator[Strike]:
    """Every one of ``kinds`` equally often, at least once, in a new order each time."""
    chance = random.Random(seed)
    times = max(1, int(60 * minutes / (SLOT_S * len(kinds))))
    slot = 60 * minutes / (times * len(kinds))
    for turn in range(times):
        for number, kind in enumerate(chance.sample(kinds, len(kinds))):
            killed = chance.choice(_killable(kind, parts)) if chance.random() < KILLED_TOO else ""
            yield Strike(
                at=slot * (turn * len(kinds) + number),
                kind=kind,
                part=_part(kind, parts, chance),
                kill=killed,
                kill_after=chance.uniform(0, max(1.0, SECONDS[kind])),
                choice=chance.randrange(2**32),
            )


def _part(kind: Kind, parts: Parts, chance: random.Random) -> str:
    match kind:
        case Kind.CLOCK_AHEAD:
            return OWNER
        case Kind.NO_FILES | Kind.PAUSED:
            return chance.choice([OWNER, *parts.services])
        case _:
            return ""


def _killable(kind: Kind, parts: Parts) -> list[str]:
    """A fault of Redis is its own; a process that is restarted just then, or stands still, cannot be killed besides."""
    match kind:
        case Kind.REDIS_FORGETS | Kind.REDIS_TWICE:
            return [*parts.services, *parts.producers]
        case Kind.COORDINATORS_ROLL | Kind.WRITERS_ROLL | Kind.PAUSED | Kind.NO_FILES | Kind.FUTURE_TIMES:
            return list(parts.producers)
        case _:
            return parts.killable
