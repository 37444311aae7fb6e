"""Compares what ingest sides handed over with what bucket sides received and wrote; finds the writers at fault (RO10). Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate_coordinator.core.events import BarrierPassed, Flushed
from headgate_coordinator.core.tally import Tally

NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An ingest side and a bucket side report different rows of the same checkpoint between them."""

    ingest: str
    bucket: str
    handed: Tally
    received: Tally

    def __str__(self) -> str:
        handed, received = _text(self.handed), _text(self.received)
        return f"writer {self.ingest} handed {handed} over to writer {self.bucket}, which reports {received}"


@dataclass(frozen=True, slots=True)
class Imbalance:
    """A bucket side received other rows than it wrote or left out because others beat them."""

    process: str
    received: int
    written: int
    beaten: int

    def __str__(self) -> str:
        return f"writer {self.process} received {self.received} rows, wrote {self.written} and left {self.beaten} out as beaten"


@dataclass(frozen=True, slots=True)
class ForeignOffset:
    """An ingest side reports an offset of a channel that it does not hold."""

    process: str
    channel: str

    def __str__(self) -> str:
        return f"writer {self.process} reported an offset of channel {self.channel!r}, which it does not hold"


@dataclass(frozen=True, slots=True)
class FalseFile:
    """A bucket side reports a file that is not there as reported."""

    process: str
    why: str

    def __str__(self) -> str:
        return f"writer {self.process} reported a false file: {self.why}"


Finding: TypeAlias = Disagreement | Imbalance | ForeignOffset | FalseFile
"""One thing that does not add up, in words for operators."""


def reconcile(passed: Mapping[str, BarrierPassed], flushed: Mapping[str, Flushed]) -> list[Finding]:
    """Returns what does not add up in the reports of a checkpoint's members, which are all in.

    A pair that a report leaves out has no rows. A row is beaten only by one that is written, so rows without a written one are
    lost.
    """
    findings: list[Finding] = []
    for ingest in [*passed, *_strangers(passed, flushed)]:
        handed = passed[ingest].handed if ingest in passed else {}
        for bucket in {**flushed, **handed}:
            received = flushed[bucket].received.get(ingest, NOTHING) if bucket in flushed else NOTHING
            if handed.get(bucket, NOTHING) != received:
                findings.append(Disagreement(ingest, bucket, handed.get(bucket, NOTHING), received))
    for bucket, report in flushed.items():
        rows = sum(tally.rows for tally in report.received.values())
        if rows != report.written + report.beaten or (rows and not report.written):
            findings.append(Imbalance(bucket, rows, report.written, report.beaten))
    return findings


def _strangers(passed: Mapping[str, BarrierPassed], flushed: Mapping[str, Flushed]) -> list[str]:
    """Processes that a bucket side has rows of, and that are no members."""
    return sorted({sender for report in flushed.values() for sender in report.received} - passed.keys())


def writers_at_fault(findings: Sequence[Finding], members: Collection[str], agreed: Mapping[str, int]) -> list[str]:
    """Returns the fewest writers that explain the findings.

    A report that contradicts itself shows its own writer. Of two writers that disagree nobody else saw what happened, so the
    one that disagrees with most others is taken; among equals the one with the fewest checkpoints that added up (``agreed``),
    then the bucket side, which had the rows last.
    """
    at_fault: list[str] = []
    pairs: list[Disagreement] = []
    for finding in findings:
        match finding:
            case Disagreement(ingest, bucket) if ingest != bucket and ingest in members and bucket in members:
                pairs.append(finding)
            case Disagreement(ingest, bucket):
                at_fault.append(ingest if ingest in members else bucket)
            case Imbalance(process) | ForeignOffset(process) | FalseFile(process):
                at_fault.append(process)
            case _:
                assert_never(finding)
    while pairs := [pair for pair in pairs if not {pair.ingest, pair.bucket} & set(at_fault)]:
        at_fault.append(_likeliest(pairs, agreed))
    return list(dict.fromkeys(at_fault))


def _likeliest(pairs: Sequence[Disagreement], agreed: Mapping[str, int]) -> str:
    others: dict[str, set[str]] = {}
    for pair in pairs:
        others.setdefault(pair.ingest, set()).add(pair.bucket)
        others.setdefault(pair.bucket, set()).add(pair.ingest)
    buckets = {pair.bucket for pair in pairs}
    return max(others, key=lambda each: (len(others[each]), -agreed.get(each, 0), each in buckets, each))


def _text(tally: Tally) -> str:
    return f"{tally.rows} rows (checksum {tally.checksum:016x})"
