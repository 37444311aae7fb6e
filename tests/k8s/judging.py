"""What producers saw and what the table holds, after a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from k8s.notes import Attempt
from support import journal
from support.exactly_once import assert_exactly_once
from support.journal import History
from support.workload import Workload


@dataclass(frozen=True, slots=True)
class Judgement:
    """``lost`` and the others count anomalies of the oracle; ``failures``: what programs saw; ``slowest``: of all calls, in s."""

    rows: int
    calls: int
    failures: Sequence[str]
    slowest: float
    anomalies: Mapping[str, int]
    details: str

    @property
    def is_well(self) -> bool:
        return not self.failures and not self.anomalies


def histories(attempts: Iterable[Attempt]) -> list[History]:
    """As the oracle wants them. An attempt that never had a channel is none."""
    found = []
    for name, theirs in groupby(attempts, key=lambda attempt: attempt.producer):
        opened = [attempt for attempt in theirs if attempt.committed >= 0]
        tries = [journal.Attempt(attempt.number, attempt.committed, attempt.sent) for attempt in opened]
        found.append(History(name, tries, max((attempt.acked for attempt in opened), default=0)))
    return found


def judge(url: str, attempts: Sequence[Attempt], workload: Workload, options: Mapping[str, str] | None = None) -> Judgement:
    """``options``: of the object store, as ``open_store`` takes them. All producers have ended."""
    told = histories(attempts)
    failures = [f"{attempt.producer}: {failure}" for attempt in attempts for failure in attempt.failures]
    failures += [f"{history.producer} did not end" for history in told if not _ended(history, attempts)]
    anomalies: Mapping[str, int] = {}
    details = ""
    try:
        report = assert_exactly_once(
            url,
            told,
            workload,
            options=options,
            hudi_rs_options={f"aws_{name}": value for name, value in (options or {}).items()},
        )
        details = str(report)
    except AssertionError as error:
        details = str(error)
        anomalies = {"anomalies": max(1, details.count("\n"))}
    rows = sum(history.known_committed for history in told)
    calls, slowest = sum(attempt.calls for attempt in attempts), max((attempt.slowest for attempt in attempts), default=0.0)
    return Judgement(rows, calls, failures, slowest, anomalies, details)


def _ended(history: History, attempts: Sequence[Attempt]) -> bool:
    """What the last attempts were told covers what earlier ones may have sent only if the last one ended."""
    return [attempt.ended for attempt in attempts if attempt.producer == history.producer][-1]
