"""What an operator who asked for a compaction is told, from the plan to its end."""

import asyncio

import pytest

from headgate_coordinator.core.compactions import CompactionPolicy, Compactions
from headgate_coordinator.core.operations import (
    Attempt,
    AttemptFailed,
    AttemptFinished,
    AttemptProgressed,
    CapacityOffered,
    CompactionEvent,
    PlanClosed,
    PlanOpened,
)
from headgate_coordinator.services.following import follow_plans
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.world import World
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import ReopenTable
from headgate_tables.face.operation import Operation, OperationResult, PinnedFile, Plan
from support.processes import READY_S

SMALL = Operation("p", "g1", None, (PinnedFile("l1", 10),), "b1")
LARGE = Operation("p", "g2", PinnedFile("b0", 100), (PinnedFile("l2", 20), PinnedFile("l3", 30)), "b2")
PLAN = Plan("20260101000000000", (SMALL, LARGE))
OF_LARGE, OF_SMALL = Attempt(PLAN.instant, 1, 1), Attempt(PLAN.instant, 0, 1)


class Told:
    """A table's compactions, told by hand; one compactor is connected."""

    compactor_count = 1

    def __init__(self) -> None:
        self.core = Compactions(CompactionPolicy(), 0.0)
        self.over = False
        self._change = asyncio.Event()

    def tell(self, *events: CompactionEvent) -> None:
        for event in events:
            self.core.handle_event(event, 0.0)
        self._change.set()

    def end(self) -> None:
        self.over = True
        self._change.set()

    async def wait_for_change(self) -> None:
        await self._change.wait()
        self._change.clear()
        if self.over:
            raise ReopenTable("over", fix="")


@pytest.fixture
def told() -> Told:
    return Told()


def compacted(operation: Operation) -> OperationResult:
    return OperationResult(operation, DataFile(operation.path, 5, "", ""), 1, 1, 0, 0, 1, 1)


def opened(attempts: int = 1) -> PlanOpened:
    return PlanOpened(PLAN.instant, PLAN.operations, attempts)


async def everything(told: Told) -> list[api.CompactResponse]:
    return [answer async for answer in follow_plans(told, [PLAN], World.real().clock, 0.0)]


async def test_the_plan_then_how_far_it_is_then_how_it_ended(told: Told) -> None:
    answers = follow_plans(told, [PLAN], World.real().clock, 0.0)
    first = (await anext(answers)).planned
    assert [each.instant for each in first.plans] == [PLAN.instant]
    assert [(each.base_bytes, each.log_files, each.log_bytes) for each in first.plans[0].operations] == [(0, 1, 10), (100, 2, 50)]
    waiting = api.CompactionProgress(operations=2, bytes=160, compactors=1)
    assert (await anext(answers)).progress == waiting, "the core has not heard of the plan yet"
    told.tell(opened(), CapacityOffered("c"), AttemptProgressed("c", OF_LARGE, 7, 60))
    assert (await anext(answers)).progress == api.CompactionProgress(
        operations=2, running=1, bytes=160, bytes_done=60, compactors=1
    )
    told.tell(AttemptFinished("c", OF_LARGE, compacted(LARGE)))
    assert (await anext(answers)).progress.bytes_done == 150
    told.tell(CapacityOffered("c"), AttemptFinished("c", OF_SMALL, compacted(SMALL)), PlanClosed(PLAN.instant, done=True))
    assert (await anext(answers)).progress.finished == 2
    assert (await anext(answers)).ended.plans == [api.CompactedPlan(instant=PLAN.instant, finished=2)]
    assert [each async for each in answers] == []


async def test_operations_that_were_dropped_are_named(told: Told) -> None:
    told.tell(opened(), CapacityOffered("c"), AttemptFailed("c", OF_LARGE, "damaged", transient=False))
    told.tell(CapacityOffered("c"), AttemptFinished("c", OF_SMALL, compacted(SMALL)), PlanClosed(PLAN.instant, done=True))
    *_, progress, ended = await everything(told)
    assert (progress.progress.finished, progress.progress.dropped, progress.progress.bytes_done) == (1, 1, 10)
    ((plan,), (dropped,)) = ended.ended.plans, ended.ended.plans[0].dropped
    assert (plan.finished, dropped.file_id, plan.cancelled) == (1, "g2", False)


async def test_a_plan_that_is_taken_back_ends_it_too(told: Told) -> None:
    told.tell(opened(), PlanClosed(PLAN.instant, done=False))
    *_, ended = await everything(told)
    assert [(each.cancelled, each.finished) for each in ended.ended.plans] == [(True, 0)]


async def test_a_plan_whose_outcome_is_forgotten_while_a_longer_one_is_open_is_told_with_it(told: Told) -> None:
    longer = Plan("20260101000000001", (SMALL,))
    told.tell(opened(), PlanOpened(longer.instant, longer.operations, 1), PlanClosed(PLAN.instant, done=False))
    answers = follow_plans(told, [PLAN, longer], World.real().clock, 0.0)
    assert [(await anext(answers)).WhichOneof("message") for _ in range(2)] == ["planned", "progress"]
    del told.core.outcomes[PLAN.instant]
    told.tell(PlanClosed(longer.instant, done=False))
    async with asyncio.timeout(READY_S):
        *_, ended = [answer async for answer in answers]
    assert [each.instant for each in ended.ended.plans] == [PLAN.instant, longer.instant]


async def test_without_a_plan_there_is_nothing_to_follow(told: Told) -> None:
    assert [each.planned.plans async for each in follow_plans(told, [], World.real().clock)] == [[]]


async def test_who_follows_learns_that_the_owner_has_gone(told: Told) -> None:
    told.tell(opened())
    following = asyncio.create_task(everything(told))
    told.end()
    with pytest.raises(ReopenTable):
        await following
