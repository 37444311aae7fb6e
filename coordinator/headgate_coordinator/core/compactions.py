"""One table's open compaction plans and the compactors that work on their operations. Pure; one object for each ownership.

Every operation ends finished, or dropped after it failed too often or an input was found damaged; then the plan goes to the
committer. A lost compactor is not the operation's fault: the operation waits for another one at once, unless many were lost
over it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.instructions import Alarm
from headgate_coordinator.core.operations import (
    Attempt,
    AttemptFailed,
    AttemptFinished,
    AttemptProgressed,
    AttemptReturned,
    CapacityOffered,
    CompactionEvent,
    CompactionInstruction,
    CompactorLost,
    Drop,
    FinishPlan,
    FinishRefused,
    OperationCounts,
    PlanClosed,
    PlanOpened,
    PlanOutcome,
    PlanProgress,
    Run,
    RunningAttempt,
    Tick,
)
from headgate_coordinator.core.plan_tasks import OperationTask, PlanTasks
from headgate_tables.backoff import Backoff
from headgate_tables.face.operation import Operation

LOSSES = 3
"""So many lost compactors count as one failed attempt: a compactor that runs out of memory never reports a failure."""
LONGEST_PAUSE = 32
"""Longest pause between tries, as a multiple of the first; each is twice the one before."""
REMEMBERED = 100
"""Number of ended plans whose outcome is kept."""


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Seconds. ``timeout``: an attempt without progress for so long has failed. ``pause``: before a failed operation, or a plan
    that could not be committed, is tried again.
    """

    timeout: float = 1200.0
    pause: float = 5.0

    def pause_after(self, tries: int) -> float:
        """Seconds to wait after so many failed ``tries`` in a row."""
        return Backoff(self.pause, self.pause * LONGEST_PAUSE).after(max(tries, 1))


class Compactions:
    """Times are monotonic seconds. Instructions are to be executed in order."""

    def __init__(self, policy: CompactionPolicy, now: float) -> None:
        self.outcomes: dict[str, PlanOutcome] = {}
        self.counts = OperationCounts()
        self._policy = policy
        self._now = now
        self._plans: dict[str, PlanTasks] = {}
        self._out: list[CompactionInstruction] = []

    # Events.

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        """Handles one event; returns instructions to execute in order. ``now`` never goes back."""
        self._now = max(now, self._now)
        self._out = []
        match event:
            case PlanOpened():
                self._opened(event)
            case PlanClosed():
                self._closed(event)
            case FinishRefused():
                self._finish_refused(event)
            case CapacityOffered():
                self._hand_out(event.process)
            case CompactorLost():
                self._lost(event.process)
            case AttemptFinished():
                self._finished(event)
            case AttemptProgressed() | AttemptFailed() | AttemptReturned():
                self._of_attempt(event)
            case Tick():
                pass
            case _:
                assert_never(event)
        self._give_up_what_stands_still()
        self._finish()
        return self._out

    def deadline(self) -> float | None:
        """When the next Tick is due, later than the last ``now``; None: only an event changes anything."""
        times = [plan.again_at for plan in self._plans.values() if plan.again_at is not None]
        for task in self._tasks():
            if task.running is not None:
                times.append(task.running.grown_at + self._policy.timeout)
            elif task.waits and task.not_before > self._now:
                times.append(task.not_before)
        return min(times, default=None)

    def _opened(self, event: PlanOpened) -> None:
        if event.instant not in self._plans:
            tasks = [OperationTask(index, operation) for index, operation in enumerate(event.operations)]
            self._plans[event.instant] = PlanTasks(event.instant, event.attempts, tasks)

    def _closed(self, event: PlanClosed) -> None:
        plan = self._plans.pop(event.instant, None)
        if plan is None:
            return
        for task in plan.tasks:
            self._stop(task)
        finished = sum(task.result is not None for task in plan.tasks)
        dropped = [task.operation for task in plan.tasks if task.dropped]
        self.outcomes[event.instant] = PlanOutcome(finished, dropped, cancelled=not event.done)
        if len(self.outcomes) > REMEMBERED:
            del self.outcomes[next(iter(self.outcomes))]

    def _finish_refused(self, event: FinishRefused) -> None:
        """Keeps the results and tries the same again for as long as it takes (rule W5)."""
        plan = self._plans.get(event.instant)
        if plan is not None and plan.sent:
            plan.sent, plan.refusals, plan.trouble = False, plan.refusals + 1, event.why
            plan.again_at = self._now + self._policy.pause_after(plan.refusals)
            self._out.append(Alarm(f"compaction {event.instant} could not be committed: {event.why}"))

    def _hand_out(self, process: str) -> None:
        """From the oldest plan first: it keeps its slices from others until it is done."""
        for instant, plan in sorted(self._plans.items()):
            task = plan.next_task(self._now)
            if task is not None:
                task.number += 1
                attempt = Attempt(instant, task.index, task.number)
                task.running = RunningAttempt(process, attempt, task.operation, self._now, self._now)
                self._out.append(Run(process, attempt, task.operation))
                return

    def _lost(self, process: str) -> None:
        for plan in self._plans.values():
            for task in plan.tasks:
                if task.running is not None and task.running.process == process:
                    task.running = None
                    task.losses += 1
                    self.counts = replace(self.counts, lost=self.counts.lost + 1)
                    if task.losses >= LOSSES * plan.attempts:
                        self._drop(plan, task, f"its compactor was lost {task.losses} times")

    def _finished(self, event: AttemptFinished) -> None:
        """From any attempt: the output's content is the same whichever compactor wrote it (rule W4)."""
        task = self._task(event.attempt)
        if task is None or task.over or event.attempt.number > task.number:
            return
        if task.running is not None and task.running.attempt != event.attempt:
            self._stop(task)
        task.running, task.result = None, event.compacted
        self.counts = replace(self.counts, finished=self.counts.finished + 1)

    def _of_attempt(self, event: AttemptProgressed | AttemptFailed | AttemptReturned) -> None:
        """Counts only for the attempt that runs now: any other was dropped."""
        task = self._task(event.attempt)
        running = task.running if task else None
        if task is None or running is None or (running.process, running.attempt) != (event.process, event.attempt):
            return
        match event:
            case AttemptProgressed():
                self._progressed(task, running, event)
            case AttemptFailed():
                self._failed(self._plans[event.attempt.instant], task, event)
            case AttemptReturned():
                task.running = None
            case _:
                assert_never(event)

    def _progressed(self, task: OperationTask, running: RunningAttempt, event: AttemptProgressed) -> None:
        said = (event.rows, event.bytes, event.batches)
        if said != (running.rows, running.bytes, running.batches):
            running.grown_at, task.troubles, task.trouble = self._now, 0, ""
        running.rows, running.bytes, running.batches = said

    def _failed(self, plan: PlanTasks, task: OperationTask, event: AttemptFailed) -> None:
        task.running = None
        self.counts = replace(self.counts, failed=self.counts.failed + 1)
        if event.damage:  # other slices of the plan do not wait for a file that cannot be read
            self._drop(plan, task, event.why)
            return
        if event.transient:
            task.troubles, task.trouble = task.troubles + 1, event.why
            task.not_before = self._now + self._policy.pause_after(task.troubles)
            return
        task.failures += 1
        task.not_before = self._now + self._policy.pause_after(task.failures)
        if task.failures >= plan.attempts:
            self._drop(plan, task, f"it failed {task.failures} times, the last time because {event.why}")

    def _drop(self, plan: PlanTasks, task: OperationTask, why: str) -> None:
        task.dropped = why
        self.counts = replace(self.counts, dropped=self.counts.dropped + 1)
        place = task.operation.at(task.operation.file_id)
        self._out.append(Alarm(f"compaction {plan.instant} goes on without {place}: {why}"))

    def _stop(self, task: OperationTask) -> None:
        if task.running is not None:
            self._out.append(Drop(task.running.process, task.running.attempt))
            task.running = None

    # Consequences.

    def _give_up_what_stands_still(self) -> None:
        for plan in self._plans.values():
            for task in plan.tasks:
                if task.running is not None and task.running.grown_at + self._policy.timeout <= self._now:
                    process, attempt = task.running.process, task.running.attempt
                    self._stop(task)
                    why = f"compactor {process} made no progress for {self._policy.timeout:g} s"
                    self._failed(plan, task, AttemptFailed(process, attempt, why, transient=False))

    def _finish(self) -> None:
        for plan in self._plans.values():
            waits = plan.again_at is not None and plan.again_at > self._now
            if plan.over and not plan.sent and not waits:
                plan.sent, plan.again_at = True, None
                finished = [task.result for task in plan.tasks if task.result is not None]
                dropped = {task.operation: task.dropped for task in plan.tasks if task.dropped}
                self._out.append(FinishPlan(plan.instant, finished, dropped))

    # State.

    def wants_compactor(self, now: float) -> bool:
        """Whether an operation waits that may begin now."""
        return any(task.waits and task.not_before <= now for task in self._tasks())

    def operation_of(self, attempt: Attempt) -> Operation | None:
        """The attempt's operation; None when its plan is closed."""
        task = self._task(attempt)
        return task.operation if task else None

    def running_attempts(self) -> list[RunningAttempt]:
        """Attempts that compactors work on, the longest first."""
        running = [task.running for task in self._tasks() if task.running is not None]
        return sorted(running, key=lambda each: each.since)

    @property
    def queued_operations(self) -> int:
        """Operations that wait for a compactor or for their next try."""
        return sum(task.waits for task in self._tasks())

    @property
    def plans(self) -> Mapping[str, PlanProgress]:
        """Open plans, by instant."""
        return {instant: plan.progress() for instant, plan in self._plans.items()}

    @property
    def alarms(self) -> Sequence[StandingAlarm]:
        """Alarms: plans that could not be committed, and operations that the store holds up."""
        refused = [plan for plan in self._plans.values() if plan.trouble]
        return [
            *self._troubles(),
            *(
                StandingAlarm(
                    AlarmKind.COMPACTION_REFUSED, f"compaction {plan.instant} was refused {plan.refusals} times: {plan.trouble}"
                )
                for plan in refused
            ),
        ]

    def _troubles(self) -> list[StandingAlarm]:
        """Of each plan, the operation that the store held up most often."""
        found: list[StandingAlarm] = []
        for plan in self._plans.values():
            worst = max(
                (task for task in plan.tasks if task.trouble and not task.over), key=lambda task: task.troubles, default=None
            )
            if worst is not None:
                place = worst.operation.at(worst.operation.file_id)
                text = f"compaction {plan.instant} of {place} is tried again, {worst.troubles} times so far: {worst.trouble}"
                found.append(StandingAlarm(AlarmKind.COMPACTION_RETRIED, text))
        return found

    def _task(self, attempt: Attempt) -> OperationTask | None:
        plan = self._plans.get(attempt.instant)
        return plan.tasks[attempt.operation] if plan and 0 <= attempt.operation < len(plan.tasks) else None

    def _tasks(self) -> Iterator[OperationTask]:
        for plan in self._plans.values():
            yield from plan.tasks
