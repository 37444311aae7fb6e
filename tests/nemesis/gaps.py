"""How long the table was without a commit, beyond what the faults explain."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """From ``begin`` to ``end``, in seconds of a clock that only grows. ``name`` is what the report says."""

    begin: float
    end: float
    name: str


@dataclass(frozen=True, slots=True)
class Gap:
    """``seconds`` without a commit, counted from the end of ``fault`` where that was later than the commit before."""

    seconds: float
    at: float
    fault: str


def gaps(commits: Sequence[float], faults: Sequence[Fault], begin: float, end: float) -> list[Gap]:
    """Each wait for a commit from ``begin`` to ``end``. ``commits`` and ``faults`` are in order of time; faults do not overlap.

    A wait begins at the commit before it or, where a fault ended in between, at that fault's end; a wait that lasts when the next
    fault begins is as long as it was until then, because what comes after is that fault's.
    """
    found = []
    for before, after in zip([begin, *commits], [*commits, end], strict=True):
        since, name = before, _at(before, faults)
        for fault in faults:
            if fault.end <= before or fault.begin >= after:
                continue
            if fault.begin > since:
                found.append(Gap(fault.begin - since, since, name))
            since, name = max(since, fault.end), fault.name
        if since < after:
            found.append(Gap(after - since, since, name))
    return found


def _at(moment: float, faults: Sequence[Fault]) -> str:
    """The last fault that began before."""
    number = bisect.bisect_right(faults, moment, key=lambda fault: fault.begin)
    return faults[number - 1].name if number else "no fault"
