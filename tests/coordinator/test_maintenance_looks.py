"""How often the owner of a table looks for maintenance: at each interval while anything happens, at every tenth otherwise."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headgate_coordinator.core.events import CompactorsCounted
from headgate_coordinator.core.instructions import AskLog, CommitCheckpoint, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.tables.maintenance_looks import COUNTING_S, FIRST_LOOK_S, MaintenanceLooks
from headgate_coordinator.tables.outage import Outage
from headgate_coordinator.tables.work import Maintain, Work
from headgate_tables.errors import StoreUnavailableError

INTERVAL = 1.0


class Scene:
    """Work is done in the same interval in which it is queued. ``looks``: at which times one was asked for. ``later``: work that
    is done from a time on.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.looks: list[float] = []
        self.counts: list[int] = []
        self.compactors: list[str] = []
        self.committer: Any = SimpleNamespace(more_to_maintain=False, outage=Outage(), figures=SimpleNamespace(counted=True))
        self.waiting: list[Work] = []
        self.later: dict[float, Work] = {}
        parts: Any = (self.committer, self.compactors, self, INTERVAL, self.put, self.report)
        self.under_test = MaintenanceLooks(*parts)

    def put(self, step: Maintain) -> None:
        self.looks.append(self.now)
        self.waiting.append(step)

    def report(self, event: CompactorsCounted) -> None:
        self.counts.append(event.count)

    async def sleep(self, seconds: float) -> None:
        due = [self.later.pop(at) for at in sorted(self.later) if at <= self.now]
        done, self.waiting = [*self.waiting, *due], []
        for work in done:
            self.under_test.done(work)
        self.now += seconds
        if self.now >= self.end:
            raise asyncio.CancelledError

    async def until(self, end: float) -> list[float]:
        """Goes on to this time, and returns the looks on the way."""
        self.looks.clear()
        self.end = end
        with pytest.raises(asyncio.CancelledError):
            await self.under_test.run()
        return list(self.looks)


async def test_a_quiet_table_is_looked_at_once_and_then_at_every_tenth_interval() -> None:
    scene = Scene()
    assert await scene.until(FIRST_LOOK_S + 35) == [FIRST_LOOK_S + number for number in (0, 10, 20, 30)]


@pytest.mark.parametrize("why", ["more is due", "the store is out of order"])
async def test_a_table_with_something_to_do_is_looked_at_in_each_interval(why: str) -> None:
    scene = Scene()
    if why == "more is due":
        scene.committer.more_to_maintain = True
        # The step that is done asks for the next one itself, in the same interval.
        assert len(await scene.until(FIRST_LOOK_S + 5)) >= 5
    else:
        scene.committer.outage.note_failure("slots", StoreUnavailableError("away", fix="Wait."), 1)
        assert await scene.until(FIRST_LOOK_S + 5) == [FIRST_LOOK_S + number for number in range(5)]


async def test_after_other_work_the_next_interval_has_a_look() -> None:
    scene = Scene()
    scene.later[FIRST_LOOK_S + 4.5] = WinOffsets(1, {})
    assert await scene.until(FIRST_LOOK_S + 9) == [FIRST_LOOK_S, FIRST_LOOK_S + 6]


async def test_a_commit_before_the_first_look_asks_for_it() -> None:
    scene = Scene()
    scene.waiting.append(CommitCheckpoint(1, 1, (), {}))
    assert (await scene.until(FIRST_LOOK_S + 1))[0] == 0


@pytest.mark.parametrize(
    ("work", "begins"),
    [
        (CommitCheckpoint(1, 1, (), {}), True),
        *((work, False) for work in (IssueInstant(1, 1), DropCheckpoint(1, 1), AskLog(), WinOffsets(1, {}))),
    ],
)
async def test_upkeep_begins_behind_the_first_checkpoint_that_is_committed_or_after_a_while(work: Work, begins: bool) -> None:
    scene = Scene()
    scene.under_test.done(work)
    assert scene.under_test.begun is begins
    await scene.until(FIRST_LOOK_S)
    assert scene.under_test.begun is begins
    await scene.until(scene.now + FIRST_LOOK_S + 1)
    assert scene.under_test.begun


async def test_until_the_slices_are_counted_looks_are_many() -> None:
    scene = Scene()
    scene.committer.figures.counted = False
    looks = await scene.until(0.5)
    assert looks[:5] == pytest.approx([COUNTING_S * number for number in range(5)])


async def test_at_most_one_step_waits() -> None:
    scene = Scene()
    scene.under_test._ask()
    scene.under_test._ask()
    assert scene.looks == [0.0]


async def test_compactors_that_come_and_go_are_reported_in_each_interval() -> None:
    scene = Scene()
    await scene.until(3)
    scene.compactors.append("one")
    await scene.until(6)
    assert scene.counts == [0, 1]
