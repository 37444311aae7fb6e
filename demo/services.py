"""Settings of the demo's table services, small enough that a minute shows a day's work, and what the services did."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from demo.producers import TABLE
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import parse_time
from headgate_tables.hudi.decisions.plans import PlanDone
from headgate_tables.hudi.log.names import parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, State, parse_instant
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds

SETTINGS = {
    "hoodie.compact.inline.max.delta.commits": "5",
    "headgate.compaction.first.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "headgate.clean.min.age": "10",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
}
"""Settings of the demo's table. Replaced files stay for 10 s: longer than any observation of the witness takes. One commit
is retained: what the last compaction has replaced can be cleaned without another commit.
"""
_PATIENCE_S, _ASK_S = 60.0, 0.5


@dataclass(frozen=True, slots=True)
class Services:
    """What the table services did, by the commit log. ``compactions``: wall-clock ms of each plan and its end; ``slices``: how
    many were compacted; ``dropped``: operations left out; ``cleaned``: data files; ``archived``: instants; ``log_files``: all
    paths ever committed.
    """

    compactions: Sequence[tuple[int, int]]
    slices: int
    dropped: int
    cleaned: int
    archived: int
    log_files: frozenset[str]

    def next_compaction(self, wall_ms: int) -> tuple[int, int] | None:
        """The first compaction that ended after ``wall_ms``; None without one."""
        return next((each for each in self.compactions if each[1] > wall_ms), None)


def configure(address: str) -> None:
    """Sets the demo's settings. Raises HeadgateError."""

    async def ask() -> None:
        async with aio.connect(address) as cluster:
            await Maintenance(cluster, TABLE).configure(SETTINGS)

    asyncio.run(ask())


def compact_and_clean(address: str, url: str) -> None:
    """Compacts until no slice has log files, or an operation was left out; returns once files were cleaned. Raises HeadgateError.

    A short run may be over before a replaced file is old enough, or before the owner has seen the five commits that it waits for:
    then it cleans on request. Gives up after a minute.
    """

    async def ask() -> None:
        async with aio.connect(address) as cluster:
            await _compact_all(Maintenance(cluster, TABLE))
            await _clean(Maintenance(cluster, TABLE), url)

    asyncio.run(ask())


async def _compact_all(owner: Maintenance) -> None:
    left = True
    while left:  # a plan that was open has only older logs of its slices
        left = False
        async for answer in owner.compact():
            if answer.WhichOneof("message") == "planned":
                left = bool(answer.planned.plans)
            elif any(plan.dropped for plan in answer.ended.plans):
                return


async def _clean(owner: Maintenance, url: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not what_services_did(url).cleaned and time.monotonic() < end:
        await owner.clean()
        await asyncio.sleep(_ASK_S)


def what_services_did(url: str) -> Services:
    """What the services did so far. Reads every slot: none is deleted within an hour."""
    _, slots = read_state(open_store(url, None, SystemIds()), LOG_LAYOUT, folds=False)
    done = [slot.body for slot in slots if isinstance(slot.body, PlanDone)]
    archived = [parse_instant(_name(path)) for path in _dead(slots, SlotKind.ARCHIVE) if path.startswith(TIMELINE_FOLDER)]
    return Services(
        compactions=[(parse_time(body.instant), parse_time(body.completion)) for body in done],
        slices=sum(len(body.files) for body in done),
        dropped=len(_dead(slots, SlotKind.PLAN_DONE)),
        cleaned=len(_dead(slots, SlotKind.CLEAN)),
        archived=sum(1 for instant in archived if instant is not None and instant.state is State.COMPLETED),
        log_files=frozenset(
            file.path for slot in _of(slots, SlotKind.COMMIT) for file in slot.files if parse_log_name(_name(file.path))
        ),
    )


def _of(slots: list[Slot], kind: SlotKind) -> list[Slot]:
    return [slot for slot in slots if slot.kind is kind]


def _dead(slots: list[Slot], kind: SlotKind) -> list[str]:
    return [name for slot in _of(slots, kind) for name in slot.names]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
