"""What calls of a table return: plain records that print well."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommitResult:
    """One commit. ``instant``: its requested time, "" when there was nothing to write; ``completion``: since when it is seen.

    ``upserted`` and ``deleted`` count rows that were written; ``superseded`` rows that a newer row of the same key in the
    same call beat. ``bytes`` is the size of the new ``files``.
    """

    instant: str
    completion: str
    upserted: int
    deleted: int
    superseded: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One completed instant of the timeline, newest last in ``Table.commits()``."""

    instant: str
    completion: str
    action: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that ``Table.verify()`` found wrong: ``path`` and ``problem`` in words."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Repaired:
    """What ``Table.repair()`` did: paths of files of the timeline, from the table's root."""

    put_back: Sequence[str]
    removed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of ``Table.verify()``; ``ok`` when nothing is wrong."""

    slots: int
    commits: int
    files: int
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether slots, timeline and files agree."""
        return not self.findings
