"""An operator's look at compactions: which plans there are, how far they are, how they ended."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from headgate_coordinator.core.compactions import Compactions
from headgate_coordinator.core.operations import PlanOutcome, PlanProgress
from headgate_coordinator.services import maintenance_answers as answers
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.world import Clock
from headgate_tables.face.operation import Plan


class FollowedCompactions(Protocol):
    """A table's compactions, as its owner knows them."""

    @property
    def core(self) -> Compactions:
        """What is open and what has ended lately."""

    @property
    def compactor_count(self) -> int:
        """Compactors that this coordinator knows."""

    async def wait_for_change(self) -> None:
        """Returns when something has happened. Raises ReopenTable when the ownership has ended."""


async def follow_plans(
    compactions: FollowedCompactions, plans: Sequence[Plan], clock: Clock, pause_s: float = 0.2
) -> AsyncIterator[api.CompactResponse]:
    """`planned`, then `progress` each time that it has changed, at most once in ``pause_s`` seconds, then `ended`.

    Ends with `planned` when there is no plan. Raises ReopenTable when the ownership ends first: the plans live on.
    """
    yield api.CompactResponse(planned=answers.planned(plans, compactions.compactor_count))
    if not plans:
        return
    before = None
    over = False
    while not over:
        # Before the progress: what happens while that is being told is looked at again, and the last one told is whole.
        over = all(plan.instant in compactions.core.outcomes for plan in plans)
        progress = _progress(compactions, plans)
        if progress != before:
            before = progress
            yield api.CompactResponse(progress=progress)
        elif not over:
            await compactions.wait_for_change()
        await clock.sleep(pause_s)  # what follows at once is told together
    ended = [answers.ended(plan.instant, compactions.core.outcomes[plan.instant]) for plan in plans]
    yield api.CompactResponse(ended=api.CompactionEnded(plans=ended))


def _progress(compactions: FollowedCompactions, plans: Sequence[Plan]) -> api.CompactionProgress:
    told = api.CompactionProgress(compactors=compactions.compactor_count)
    for plan in plans:
        known = compactions.core.plans.get(plan.instant) or _of_ended(plan, compactions.core.outcomes.get(plan.instant))
        told.operations += known.operations
        told.finished += known.finished
        told.dropped += known.dropped
        told.running += known.running
        told.bytes += known.bytes
        told.bytes_done += known.bytes_done
    return told


def _of_ended(plan: Plan, outcome: PlanOutcome | None) -> PlanProgress:
    """A plan that is over, or that the core has not heard of yet."""
    size = sum(each.input_bytes for each in plan.operations)
    if outcome is None or outcome.cancelled:
        return PlanProgress(len(plan.operations), 0, 0, 0, size, 0)
    done = size - sum(each.input_bytes for each in outcome.dropped)
    return PlanProgress(len(plan.operations), outcome.finished, len(outcome.dropped), 0, size, done)
