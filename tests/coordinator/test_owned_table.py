"""One owned table's tasks: in which order slot work is done, and what those who wait for it hear; the committer is a fake."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from headgate_coordinator.core import events
from headgate_coordinator.core.compactions import CompactionPolicy
from headgate_coordinator.core.instructions import Refusal
from headgate_coordinator.core.operations import PlanOpened
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.streams.writers import WriterSession
from headgate_coordinator.tables import maintenance_looks
from headgate_coordinator.tables.committer import LastCommit
from headgate_coordinator.tables.outage import Outage
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.service_policy import ServicePolicy
from headgate_coordinator.tables.work import RunService
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.world import World
from headgate_tables.errors import OutcomeUnknownError, ReopenTable, StoreDeniedError
from support.operations import operation
from support.processes import READY_S

REFUSAL = Refusal("CODE_TABLE_RESTORED", "the table was restored", "Open again.")


class Committer:
    """Does nothing, when its gate is open; ``log``: what it was asked, in order. Its first work is always Maintain."""

    more_to_maintain, maintenance_alarm = False, None

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.tidied: list[str] = []
        """Behind which work."""
        self.gate = threading.Event()
        self.last_commit, self.outage = LastCommit(), Outage()
        self.settings: dict[str, str] = {}
        self.alarms: list[str] = []
        self.figures = SimpleNamespace(counted=True)

    def load_past(self) -> None: ...

    def tidy(self) -> None:
        self.tidied.append(self.log[-1])

    def hand_over(self) -> None:
        self.log.append("handed over")

    def execute(self, work: Any) -> None:
        self.log.append(type(work).__name__)
        assert self.gate.wait(READY_S)
        if isinstance(work, RunService):
            work.run(None)  # type: ignore[arg-type]

    def finish_with(self, work: RunService) -> None:
        self.log.append("the end")
        work.run(None)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes in the first seconds is not about maintenance, which is the committer's first work here."""
    monkeypatch.setattr(maintenance_looks, "FIRST_LOOK_S", 0.0)


class Guard:
    """Believes the clock, and says when it was asked."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def status(self) -> Any:
        return SimpleNamespace(alarm="")

    async def until_believed(self) -> None:
        self.log.append("is the clock believed?")


class Scene:
    """``sessions``: of writers that are there before the table is owned."""

    def __init__(self, threads: ThreadPoolExecutor, writers: Sequence[str]) -> None:
        self.log: list[str] = []
        self.committer = Committer(self.log)
        self.registry = CollectorRegistry()
        state = self.state = CoordinatorState()
        self.sessions = [state.writers.add_writer(writer, f"{writer}:1") for writer in writers]
        parts: Any = (
            OrderTarget("t", 7, "", TableDefinition()),
            TableCoordinator(7, {}, CheckpointPolicy(first_checkpoint_bytes=0), 2, 0.0),
            lambda report: self.committer,
            state.writers,
            state.compactors,
            ServicePolicy(1000.0, CompactionPolicy()),
            World.real(),
            Guard(self.log),
            Metrics(self.registry).for_table("t"),
            threads,
        )
        self.table = state.owned["t"] = OwnedTable(*parts)

    async def until(self, entry: str) -> None:
        while entry not in self.log:
            await asyncio.sleep(0.001)


@asynccontextmanager
async def owned(*writers: str, begun: bool = True) -> AsyncIterator[tuple[Scene, asyncio.Task[None]]]:
    """Serving; ``begun``: with the committer at its first work."""
    with ThreadPoolExecutor(2) as threads:
        scene = Scene(threads, writers)
        async with asyncio.timeout(READY_S):
            running = asyncio.ensure_future(scene.table.run())
            try:
                if begun:
                    await scene.until("Maintain")
                yield scene, running
            finally:
                scene.committer.gate.set()
                running.cancel()
                await asyncio.wait([running])


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_checkpoints_go_before_what_somebody_asks_for_and_requests_are_done_in_their_order() -> None:
    """Rule C2: one slot at a time."""
    async with owned() as (scene, _):
        done: list[int] = []
        asked = [
            asyncio.ensure_future(scene.table.call_table(lambda table, number=number: done.append(number))) for number in range(5)
        ]
        await settled()
        scene.table.queue_event(events.WriterJoined("a", "a:1"))
        scene.table.queue_event(events.InstantAsked("a", 1, 1))
        await settled()
        scene.committer.gate.set()
        await asyncio.gather(*asked)
        works = [entry for entry in scene.log if "?" not in entry]
        assert works == ["Maintain", "IssueInstant", *["RunService"] * 5]
        assert done == [0, 1, 2, 3, 4]


async def test_nothing_is_tidied_while_rows_wait_for_the_first_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance_looks, "FIRST_LOOK_S", 1000.0)
    async with owned(begun=False) as (scene, _):
        scene.committer.gate.set()
        scene.table.queue_event(events.WriterJoined("a", "a:1"))
        scene.table.queue_event(events.InstantAsked("a", 1, 1))
        await scene.until("IssueInstant")
        await scene.table.call_table(lambda table: None)
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert scene.committer.tidied == []
        scene.table._looks.begun = True
        await scene.table.call_table(lambda table: None)
        while not scene.committer.tidied:
            await asyncio.sleep(0.001)
        assert scene.committer.tidied == ["RunService"]


async def test_before_work_that_issues_times_the_clock_has_to_be_believed() -> None:
    async with owned() as (scene, _):
        assert scene.log == ["is the clock believed?", "Maintain"]
        asking = asyncio.ensure_future(scene.table.call_table(lambda table: None))
        await settled()
        scene.committer.gate.set()
        await asking
        assert scene.log[2:] == ["RunService"], "an operator is told"


async def test_of_two_who_want_to_be_alone_with_the_table_the_second_is_refused_at_once_and_the_first_gets_its_turn() -> None:
    """Also before the table is drained, which takes as long as a slot is being sent."""
    async with owned() as (scene, running):
        first = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: "restored"))
        second = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: "restored twice"))
        await settled()
        refused_at_once = second.done()
        scene.committer.gate.set()
        await running
        assert await first == "restored"
        with pytest.raises(ReopenTable, match="handed over"):
            await second
        assert refused_at_once
        assert scene.log[-1] == "the end"


async def test_nobody_is_alone_with_a_table_that_is_handed_over_already() -> None:
    """Its successor may be about to fence; and who hands a table over keeps no lease for the sake of a request."""
    async with owned() as (scene, running):
        scene.table.queue_event(events.DrainAsked())
        await settled()
        late = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: "restored"))
        await settled()
        refused_at_once = late.done()
        scene.committer.gate.set()
        await running
        with pytest.raises(ReopenTable):
            await late
        assert refused_at_once
        assert not scene.table.ended_by_request
        assert "the end" not in scene.log
        assert scene.log[-1] == "handed over"


async def test_all_writers_that_are_there_when_the_ownership_begins_have_a_part_in_its_first_checkpoint() -> None:
    """Else the first would have it alone, and the channels of the others would wait for the second checkpoint."""
    async with owned("a", "b", "c") as (scene, _):
        await settled()
        for session in scene.sessions:
            order = session._queue.get_nowait()
            assert order is not None
            assert [member.process for member in order.table.attach.membership.members] == ["a", "b", "c"]
            assert session._queue.empty()


async def test_a_writer_that_leaves_already_has_no_part_in_the_first_checkpoint() -> None:
    with ThreadPoolExecutor(2) as threads:
        scene = Scene(threads, ["a", "b"])
        leaves, stays = scene.sessions
        leaves.leaving = True
        running = asyncio.ensure_future(scene.table.run())
        try:
            await scene.until("Maintain")
            order = stays._queue.get_nowait()
            assert order is not None
            assert [member.process for member in order.table.attach.membership.members] == ["b"]
            assert said(leaves) == []
        finally:
            scene.committer.gate.set()
            running.cancel()
            await asyncio.wait([running])


def said(session: WriterSession) -> list[str]:
    """What waits to be sent to a writer, by kind; orders about a table by their own."""
    kinds = []
    while not session._queue.empty():
        message = session._queue.get_nowait()
        assert message is not None
        kinds.append(message.table.WhichOneof("message") or message.WhichOneof("message") or "")
    return kinds


async def test_a_writer_that_leaves_is_free_when_the_table_can_do_without_it_and_not_before() -> None:
    async with owned() as (scene, running):
        writers = scene.state.writers
        leaves, stays = writers.add_writer("a", "a:1"), writers.add_writer("b", "b:1")
        await settled()
        assert "attach" in said(leaves)
        writers.handle_writer_message(leaves, wire.ControlRequest(leave=wire.Leave()))
        assert said(leaves) == [], "the table has not even heard of it"
        await settled()
        assert not {"detach", "released"} & {*said(leaves)}, "it has a part in checkpoints that are not over"
        running.cancel()
        scene.committer.gate.set()
        await asyncio.wait([running])
        assert said(leaves) == ["detach", "released"]
        assert said(stays)[-1] == "detach"


async def test_who_waits_for_an_answer_hears_that_the_ownership_has_ended() -> None:
    async with owned() as (scene, running):
        asking = asyncio.ensure_future(scene.table.call_table(lambda table: None))
        await settled()
        running.cancel()
        scene.committer.gate.set()
        await asyncio.wait([running])
        with pytest.raises(ReopenTable):
            await asyncio.wait_for(asking, READY_S)


async def test_nobody_says_of_what_is_on_its_way_to_the_store_that_it_was_not_done() -> None:
    """A restore that is sent again would undo what came since."""
    goes_on = threading.Event()
    async with owned() as (scene, running):
        scene.committer.gate.set()
        restored = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: goes_on.wait(READY_S)))
        try:
            await scene.until("the end")
            for _ in range(2):  # at each renewal without the lease
                running.cancel()
                await settled()
            with pytest.raises(OutcomeUnknownError):
                await restored
        finally:
            goes_on.set()


async def test_generations_that_were_given_up_are_counted_once() -> None:
    async with owned() as (scene, _):
        scene.table.queue_event(events.WriterJoined("a", "a:1"))
        scene.table.queue_event(events.Broken("a", 1, "its disk is full"))
        for _ in range(3):
            scene.table.queue_event(events.Tick())
        await settled()
        assert scene.registry.get_sample_value("headgate_aborts_total", {"table": "t"}) == 1
        assert scene.registry.get_sample_value("headgate_refuted_checkpoints_total", {"table": "t"}) == 0


async def test_status_tells_that_the_store_refuses_and_since_when() -> None:
    async with owned() as (scene, _):
        scene.committer.outage.note_failure("slots", StoreDeniedError("PUT slot: 403", fix="Renew the token."), 1_763_820_202_000)
        assert any("the store has denied access since 2025-11-22" in alarm for alarm in scene.table.view.status("one").alarms)


@asynccontextmanager
async def in_its_last_work() -> AsyncIterator[tuple[Scene, asyncio.Future[object], list[asyncio.Future[object]]]]:
    """Beside the scene: a request that had begun before, and those that had not."""
    async with owned() as (scene, running):
        goes_on, lent = threading.Event(), threading.Event()
        begun = asyncio.ensure_future(scene.table.call_table(lambda table: goes_on.wait(READY_S)))
        scene.committer.gate.set()
        await scene.until("RunService")
        queued = asyncio.ensure_future(scene.table.call_table(lambda table: None))
        alone = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: lent.wait(READY_S)))
        await settled()
        assert [each.done() for each in (begun, queued)] == [False, False]
        goes_on.set()
        await scene.until("the end")
        try:
            yield scene, begun, [queued]
        finally:
            lent.set()
            await running
            assert await alone


async def test_requests_that_have_not_begun_do_not_wait_for_the_end_of_the_last_work() -> None:
    """A loan takes hours."""
    async with in_its_last_work() as (scene, begun, waiting):
        waiting.append(asyncio.ensure_future(scene.table.call_table(lambda table: None)))
        assert await begun, "what was done is not refused: its caller would do it again"
        for request in waiting:
            with pytest.raises(ReopenTable):
                await request


async def test_a_writer_that_comes_during_the_last_work_has_no_part_and_may_leave_at_once() -> None:
    async with in_its_last_work() as (scene, _, _):
        writers = scene.state.writers
        late = writers.add_writer("a", "a:1")
        writers.handle_writer_message(late, wire.ControlRequest(leave=wire.Leave()))
        await settled()
        assert said(late) == ["released"]


async def test_a_writer_that_came_too_late_for_the_core_may_leave_during_the_last_work() -> None:
    lent = threading.Event()
    async with owned() as (scene, running):
        scene.committer.gate.set()
        alone = asyncio.ensure_future(scene.table.call_table_alone(REFUSAL, lambda table: lent.wait(READY_S)))
        asyncio.get_running_loop().call_soon(lambda: scene.state.writers.add_writer("a", "a:1"))
        try:
            await scene.until("the end")
            [late] = [each for each in scene.state.writers if each.process == "a"]
            said(late)
            scene.state.writers.handle_writer_message(late, wire.ControlRequest(leave=wire.Leave()))
            await settled()
            assert said(late) == ["released"]
        finally:
            lent.set()
        await running
        assert await alone


async def test_what_the_core_says_to_a_writers_older_stream_does_not_end_its_part_with_the_newer_one() -> None:
    """The core counted it as a member, and it heard nothing more: rows for it went nowhere until the owner changed."""
    async with owned("a") as (scene, _):
        scene.table.queue_event(events.CheckpointAsked("a", 1))
        while scene.table.view.status("one").checkpoint < 2:  # which cannot end before the first, so "b" is in neither
            await asyncio.sleep(0.01)
        writers = scene.state.writers
        first = writers.add_writer("b", "b:1")
        await settled()
        writers.handle_writer_message(first, wire.ControlRequest(leave=wire.Leave()))
        second = writers.add_writer("b", "b:1")
        await settled()
        assert "detach" not in said(second)
        writers.remove_writer(second, "its machine is gone")
        await settled()
        assert "b" not in scene.table._core._state.members


async def test_compactors_get_nothing_while_the_last_work_is_done() -> None:
    async with in_its_last_work() as (scene, _, _):
        compactions = scene.table.compactions
        compactions.handle_event(PlanOpened("i1", [operation(0, 100)], attempts=3))
        assert not compactions.wants_compactor
        scene.state.compactors.add_compactor("c", "host")
        (session,) = scene.state.compactors
        compactions.offer_capacity(session)
        assert not compactions.core.running_attempts()
