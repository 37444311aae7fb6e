"""The operations of one open compaction plan: which wait, which run, which are over. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate_coordinator.core.operations import PlanProgress, RunningAttempt
from headgate_tables.face.operation import Operation, OperationResult


@dataclass(slots=True)
class OperationTask:
    """One operation. ``number``: of its newest attempt; ``troubles``: failures of the store since the last progress. ``dropped``:
    why the plan goes on without it; "": it is not dropped.
    """

    index: int
    operation: Operation
    number: int = 0
    failures: int = 0
    losses: int = 0
    troubles: int = 0
    trouble: str = ""
    not_before: float = 0.0
    running: RunningAttempt | None = None
    result: OperationResult | None = None
    dropped: str = ""

    @property
    def over(self) -> bool:
        return self.result is not None or bool(self.dropped)

    @property
    def waits(self) -> bool:
        return self.running is None and not self.over


@dataclass(slots=True)
class PlanTasks:
    """One plan. ``tasks``: by operation index; ``sent``: the committer ends the plan; ``again_at``: when a refused end is
    retried.
    """

    instant: str
    attempts: int
    tasks: Sequence[OperationTask]
    sent: bool = False
    refusals: int = 0
    again_at: float | None = None
    trouble: str = ""

    @property
    def over(self) -> bool:
        return all(task.over for task in self.tasks)

    def next_task(self, now: float) -> OperationTask | None:
        """The largest that may begin: the plan ends with its last operation, so large ones must not come last."""
        ready = [task for task in self.tasks if task.waits and task.not_before <= now]
        return max(ready, key=lambda task: (task.operation.input_bytes, -task.index), default=None)

    def progress(self) -> PlanProgress:
        finished = [task for task in self.tasks if task.result is not None]
        running = [task.running for task in self.tasks if task.running is not None]
        done = sum(task.operation.input_bytes for task in finished)
        return PlanProgress(
            operations=len(self.tasks),
            finished=len(finished),
            dropped=sum(bool(task.dropped) for task in self.tasks),
            running=len(running),
            bytes=sum(task.operation.input_bytes for task in self.tasks),
            bytes_done=done + sum(min(each.bytes, each.operation.input_bytes) for each in running),
        )
