"""A table's compactions in a small world of chance: the real registry and the real owner's side, compactors that are scripted by
dice, streams that deliver late and break, a committer that refuses, takeovers. No files, no sockets, no time but a number.
"""

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from headgate_coordinator.core.compactions import LOSSES, CompactionPolicy, Compactions
from headgate_coordinator.core.operations import FinishPlan, FinishRefused, PlanClosed, PlanOpened, Tick
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.streams.compactors import Compactors, CompactorSession
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_tables.face.operation import Operation
from support.operations import operation

ATTEMPTS = 2
_CALM = ["grows", "done", "done", "store"]
_ROUGH = [*_CALM, "grows", "grows", "done", "fails"]
POLICY = CompactionPolicy(timeout=60.0, pause=2.0)


class WrongError(AssertionError):
    """Something came out that must not."""


@dataclass
class Plan:
    """``ended``: how, once the log says so: "done" or "cancelled"."""

    operations: list[Operation]
    ended: str = ""
    dropped: set[int] = field(default_factory=set)


@dataclass
class Peer:
    """A compactor's process: what it has said and heard that is still on the way, and what it works on."""

    process: str
    slots: int
    session: CompactorSession | None = None
    leaving: bool = False
    to_owner: deque[wire.WorkRequest] = field(default_factory=deque)
    to_peer: deque[wire.WorkResponse] = field(default_factory=deque)
    running: list[wire.RunAttempt] = field(default_factory=list)
    said: list[wire.WorkRequest] = field(default_factory=list)

    def say(self, message: wire.WorkRequest) -> None:
        self.to_owner.append(message)

    def say_slots(self) -> None:
        free = 0 if self.leaving else self.slots - len(self.running)
        self.say(wire.WorkRequest(ready=wire.Ready(operations=free)))


class Walk:
    """``monotonic`` is the clock's. ``poison``: operations that fail each time, or kill whoever tries."""

    def __init__(self, seed: int, core: type[Compactions] = Compactions) -> None:
        self.dice = random.Random(seed)
        self.now = 0.0
        self.faults: Counter[str] = Counter()
        self.plans: dict[str, Plan] = {}
        self.outputs: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._core = core
        self._poison: dict[str, str] = {}
        self._peers: list[Peer] = []
        self._born = 0
        self._epoch = 0
        self._sent: deque[FinishPlan] = deque()
        self._calm = False
        self.table: TableCompactions
        self._metrics = Metrics(CollectorRegistry()).for_table("t")
        self.compactors = Compactors(self)
        self._take_over(sessions=True)

    # --- what the registry and the owner's side see of the world ---

    def operation_sources(self) -> dict[str, TableCompactions]:
        return {"t": self.table}

    def operation_source(self, table: str, epoch: int) -> TableCompactions | None:
        return self.table if epoch == self._epoch else None

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return round(self.now * 1000)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    # --- the walk ---

    def run(self, steps: int) -> None:
        """Faults for a while, then none: everything has to come to its end. Raises WrongError."""
        for _ in range(steps):
            self._step()
        self._calm = True
        for _ in range(40 * steps):
            if all(plan.ended for plan in self.plans.values()) and not self._sent:
                break
            self._step()
        else:
            raise WrongError(f"stuck: {[name for name, plan in self.plans.items() if not plan.ended]}")
        if self.table.core.running_attempts() or self.table.core.queued_operations or self.table.core.plans:
            raise WrongError("the core has work left of plans that have ended")
        for name, plan in self.plans.items():
            self._check(name, plan)

    def _check(self, name: str, plan: Plan) -> None:
        if plan.ended == "cancelled":
            return
        for index, each in enumerate(plan.operations):
            if index not in plan.dropped and each.output not in self.outputs:
                raise WrongError(f"{name}/{index} was committed and nobody made its file")

    def _step(self) -> None:
        steps: list[tuple[int, Any]] = [
            (90, self._deliver_to_owner),
            (70, self._deliver_to_peer),
            (70, self._work),
            (20, self._wait),
            (20, self._commit),
            (8, self._join),
        ]
        if not self._calm:
            steps += [
                (4, self._plan),
                (2, self._kill),
                (2, self._cut),
                (2, self._drain),
                (4, self._repeat),
                (1, self._reopen),
                (1, self._move),
                (1, self._cancel),
            ]
        [step] = self.dice.choices([each for _, each in steps], [weight for weight, _ in steps])
        step()
        for peer in self._peers:
            if peer.session is not None:
                queue = peer.session._queue
                while not queue.empty():
                    message = queue.get_nowait()
                    if message is not None:
                        peer.to_peer.append(message)
        self._look_at_attempts()

    def _look_at_attempts(self) -> None:
        running = [(each.attempt.instant, each.attempt.operation) for each in self.table.core.running_attempts()]
        if len(running) != len(set(running)):
            raise WrongError("an operation is with two compactors")
        known = {peer.process for peer in self._peers if peer.session is not None}
        if not {each.process for each in self.table.core.running_attempts()} <= known:
            raise WrongError("an operation is with a compactor that is gone")

    # --- what happens by itself ---

    def _wait(self) -> None:
        self.now += self.dice.choice([0.1, 1.0, POLICY.pause, POLICY.timeout / 3])
        for each in self.table.core.running_attempts():
            self.failed[each.operation.output] += each.grown_at + POLICY.timeout <= self.now
        due = self.table.core.deadline()
        if due is not None and due <= self.now:
            self.table.handle_event(Tick())

    def _some_peer(self, wanted: Any) -> Peer | None:
        return self.dice.choice(found) if (found := [peer for peer in self._peers if wanted(peer)]) else None

    def _deliver_to_owner(self) -> None:
        peer = self._some_peer(lambda peer: peer.to_owner and peer.session)
        if peer is not None and peer.session is not None:
            self.compactors.handle_compactor_message(peer.session, peer.to_owner.popleft())

    def _deliver_to_peer(self) -> None:
        peer = self._some_peer(lambda peer: peer.to_peer)
        if peer is None:
            return
        message = peer.to_peer.popleft()
        kind = message.WhichOneof("message")
        if kind == "run" and (peer.leaving or len(peer.running) >= peer.slots):
            peer.say(wire.WorkRequest(returned=wire.AttemptReturned(attempt=message.run.attempt)))
        elif kind == "run":
            peer.running.append(message.run)
            peer.say_slots()
        elif kind == "drop":
            peer.running = [each for each in peer.running if each.attempt != message.drop.attempt]
            peer.say_slots()
        elif kind == "released":
            if any(each.process == peer.process for each in self.table.core.running_attempts()):
                raise WrongError("a compactor that leaves was released while it has operations")
            self._remove(peer)

    def _work(self) -> None:
        peer = self._some_peer(lambda peer: peer.running)
        if peer is None:
            return
        order = self.dice.choice(peer.running)
        name = self.plans[order.attempt.instant].operations[order.attempt.operation].output
        poison = self._poison.get(name, "")
        if poison == "kills":
            self.faults["poison"] += 1
            self._die(peer)
            return
        outcome = "fails" if poison else self.dice.choice(_CALM if self._calm else _ROUGH)
        if outcome == "grows":
            progress = wire.AttemptProgress(attempt=order.attempt, rows_done=self.dice.randrange(1000))
            peer.say(wire.WorkRequest(heartbeat=wire.AttemptsHeartbeat(attempts=[progress])))
            return
        peer.running.remove(order)
        if outcome == "done":
            self.outputs.add(name)
            self._report(peer, wire.WorkRequest(finished=wire.AttemptFinished(attempt=order.attempt, size=1)))
        else:
            self.faults[outcome] += 1
            kind = wire.FAILURE_KIND_STORE if outcome == "store" else wire.FAILURE_KIND_OPERATION
            self.failed[name] += outcome == "fails"
            self._report(peer, wire.WorkRequest(failed=wire.AttemptFailed(attempt=order.attempt, why="dice", kind=kind)))
        peer.say_slots()

    def _report(self, peer: Peer, report: wire.WorkRequest) -> None:
        peer.said.append(report)
        peer.say(report)

    def _commit(self) -> None:
        """A slot is won, refused, or nobody knows and the table is opened again."""
        if not self._sent:
            return
        sent = self._sent.popleft()
        outcomes = ["won", "won", "refused", "unknown, won", "unknown, not won"]
        outcome = self.dice.choice(outcomes[:3] if self._calm else outcomes)
        plan = self.plans[sent.instant]
        if plan.ended:
            return  # cancelled meanwhile: the committer finds it closed
        if outcome == "refused":
            self.faults[outcome] += 1
            self.table.handle_event(FinishRefused(sent.instant, "dice"))
            return
        if "not" not in outcome:
            self._won(plan, sent)
        if outcome == "won":
            self.table.handle_event(PlanClosed(sent.instant, done=True))
        else:
            self.faults[outcome] += 1
            self._take_over(sessions=self.dice.random() < 0.5)

    def _won(self, plan: Plan, sent: FinishPlan) -> None:
        """Each operation once, and none is left out without a reason."""
        named = [each.output for each in (*(done.operation for done in sent.finished), *sent.dropped)]
        if sorted(named) != sorted(each.output for each in plan.operations):
            raise WrongError(f"{sent.instant} ends with {named}")
        plan.ended = "done"
        for index, each in enumerate(plan.operations):
            if each in sent.dropped:
                plan.dropped.add(index)
                if self.failed[each.output] < ATTEMPTS and self.lost[each.output] < ATTEMPTS * LOSSES:
                    raise WrongError(f"{each.output} was dropped after {self.failed[each.output]} failures")

    def _join(self) -> None:
        if len(self._peers) < 3:
            self._born += 1
            self._connect(Peer(f"c{self._born}", self.dice.choice([1, 1, 2])))

    def _connect(self, peer: Peer) -> None:
        peer.session = self.compactors.add_compactor(peer.process, "host")
        peer.to_owner.clear()
        peer.to_peer.clear()
        if peer not in self._peers:
            self._peers.append(peer)
        peer.say_slots()
        if peer.leaving:
            peer.say(wire.WorkRequest(leave=wire.CompactorLeave()))

    # --- faults ---

    def _plan(self) -> None:
        if sum(not plan.ended for plan in self.plans.values()) >= 3:
            return
        instant = f"i{len(self.plans):04}"
        operations = [operation(len(self.plans) * 10 + number, self.dice.randrange(100)) for number in range(4)]
        self.plans[instant] = Plan(operations)
        if self.dice.random() < 0.3:
            self._poison[self.dice.choice(operations).output] = self.dice.choice(["fails", "kills"])
        self.table.handle_event(PlanOpened(instant, operations, ATTEMPTS))

    def _kill(self) -> None:
        if (peer := self._some_peer(lambda peer: True)) is not None:
            self.faults["killed"] += 1
            self._die(peer)

    def _die(self, peer: Peer) -> None:
        self._lose(peer, "killed")
        self._remove(peer)

    def _cut(self) -> None:
        """The process lives on: it gives its attempts up, but some output may be made all the same."""
        peer = self._some_peer(lambda peer: peer.session is not None)
        if peer is None:
            return
        self.faults["cut"] += 1
        for order in peer.running:
            if self.dice.random() < 0.5:
                done = self.plans[order.attempt.instant].operations[order.attempt.operation]
                self.outputs.add(done.output)
                peer.said.append(wire.WorkRequest(finished=wire.AttemptFinished(attempt=order.attempt, size=1)))
        peer.running.clear()
        self._lose(peer, "cut")
        self._connect(peer)

    def _lose(self, peer: Peer, why: str) -> None:
        for each in self.table.core.running_attempts():
            if each.process == peer.process:
                self.lost[each.operation.output] += 1
        if peer.session is not None:
            session, peer.session = peer.session, None
            self.compactors.remove_compactor(session, why)

    def _remove(self, peer: Peer) -> None:
        if peer.session is not None:
            session, peer.session = peer.session, None
            self.compactors.remove_compactor(session, "gone")
        self._peers.remove(peer)

    def _drain(self) -> None:
        peer = self._some_peer(lambda peer: not peer.leaving)
        if peer is None:
            return
        self.faults["drained"] += 1
        peer.leaving = True
        peer.say(wire.WorkRequest(leave=wire.CompactorLeave()))
        for order in peer.running:
            peer.say(wire.WorkRequest(returned=wire.AttemptReturned(attempt=order.attempt)))
        peer.running.clear()

    def _repeat(self) -> None:
        """A report that was made before comes once more, from this process or under an ownership that is over."""
        if (peer := self._some_peer(lambda peer: peer.said)) is not None:
            self.faults["repeated"] += 1
            peer.say(self.dice.choice(peer.said))

    def _reopen(self) -> None:
        self.faults["reopened"] += 1
        self._take_over(sessions=True)

    def _move(self) -> None:
        self.faults["moved"] += 1
        self._take_over(sessions=False)

    def _cancel(self) -> None:
        open_ones = [name for name, plan in self.plans.items() if not plan.ended]
        if open_ones:
            self.faults["cancelled"] += 1
            name = self.dice.choice(open_ones)
            self.plans[name].ended = "cancelled"
            self.table.handle_event(PlanClosed(name, done=False))

    def _take_over(self, *, sessions: bool) -> None:
        """``sessions``: the streams stay, since it is the same coordinator."""
        if self._epoch:
            for running in self.table.core.running_attempts():
                self.compactors.drop_attempt(running.process, self.table._wire(running.attempt))
        self._sent.clear()
        self._epoch += 1
        self.failed.clear()
        self.lost.clear()
        if not sessions:
            for peer in list(self._peers):
                peer.running.clear()
                if peer.session is not None:
                    session, peer.session = peer.session, None
                    session.end_stream("moved")
            self.compactors = Compactors(self)
        target = OrderTarget("t", self._epoch, "file:///t", TableDefinition())
        core = self._core(POLICY, self.now)
        self.table = TableCompactions(target, core, self.compactors, self._sent.append, dict, self, self._metrics)
        if not sessions:
            for peer in self._peers:
                self._connect(peer)
        for name, plan in self.plans.items():
            if not plan.ended:
                self.table.handle_event(PlanOpened(name, plan.operations, ATTEMPTS))
