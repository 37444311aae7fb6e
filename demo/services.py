"""The table's services in the demo: small numbers, so that a minute shows what takes a day elsewhere; and what they did."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from demo.producers import TABLE
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_tables.commitlog.publish import data_files
from headgate_tables.commitlog.slot import Kind, Slot
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import parse_time
from headgate_tables.hudi.log.names import parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, State, parse_instant
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds

SETTINGS = {
    "hoodie.compact.inline.max.delta.commits": "5",
    "headgate.compaction.first.delta.commits": "2",
    "hoodie.clean.commits.retained": "3",
    "headgate.clean.min.age": "10",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
}
"""Of the demo's table. Files stay for 10 s after they were replaced: above the longest look of the witness."""


@dataclass(frozen=True, slots=True)
class Services:
    """By the commit log. ``compactions``: when each was planned and done, milliseconds of the wall clock; of so many ``slices``.
    Operations that were ``dropped``, data files ``cleaned``, instants ``archived``; paths of all log files ever committed.
    """

    compactions: Sequence[tuple[int, int]]
    slices: int
    dropped: int
    cleaned: int
    archived: int
    log_files: frozenset[str]

    def next_compaction(self, wall_ms: int) -> tuple[int, int] | None:
        """The first one that was done after a moment; None when there was none."""
        return next((each for each in self.compactions if each[1] > wall_ms), None)


def configure(address: str) -> None:
    """Raises HeadgateError."""

    async def ask() -> None:
        async with aio.connect(address) as cluster:
            await Maintenance(cluster, TABLE).configure(SETTINGS)

    asyncio.run(ask())


def compact_all(address: str) -> None:
    """Returns when no slice has logs any more, or an operation was dropped. Raises HeadgateError."""
    asyncio.run(_compact_all(address))


async def _compact_all(address: str) -> None:
    async with aio.connect(address) as cluster:
        left = True
        while left:  # a plan that was open has only older logs of its slices
            left = False
            async for answer in Maintenance(cluster, TABLE).compact():
                if answer.WhichOneof("message") == "planned":
                    left = bool(answer.planned.plans)
                elif any(plan.dropped for plan in answer.ended.plans):
                    return


def what_services_did(url: str) -> Services:
    """Reads every slot; none is deleted within an hour of its making."""
    _, slots = read_state(open_store(url, None, SystemIds()), LOG_LAYOUT, folds=False)
    done = _of(slots, Kind.PLAN_DONE)
    archived = [parse_instant(_name(path)) for path in _dead(slots, Kind.ARCHIVE) if path.startswith(TIMELINE_FOLDER)]
    return Services(
        compactions=[(parse_time(slot.body["instant"]), parse_time(slot.body["completion"])) for slot in done],
        slices=sum(len(data_files(slot)) for slot in done),
        dropped=len(_dead(slots, Kind.PLAN_DONE)),
        cleaned=len(_dead(slots, Kind.CLEAN)),
        archived=sum(1 for instant in archived if instant is not None and instant.state is State.COMPLETED),
        log_files=frozenset(
            file.path for slot in _of(slots, Kind.COMMIT) for file in data_files(slot) if parse_log_name(_name(file.path))
        ),
    )


def _of(slots: list[Slot], kind: Kind) -> list[Slot]:
    return [slot for slot in slots if slot.kind is kind]


def _dead(slots: list[Slot], kind: Kind) -> list[str]:
    return [name for slot in _of(slots, kind) for name in slot.body.get("names", ())]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
