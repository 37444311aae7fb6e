"""Follows compactions for an operator: the open plans, their progress, their outcomes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from headgate_coordinator.core.compactions import Compactions
from headgate_coordinator.core.operations import PlanOutcome, PlanProgress
from headgate_coordinator.services import maintenance_answers as answers
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.world import Clock
from headgate_tables.face.operation import Plan


class FollowedCompactions(Protocol):
    """The compactions of an owned table."""

    @property
    def core(self) -> Compactions:
        """Plans that are open, and outcomes of plans that ended lately."""

    @property
    def compactor_count(self) -> int:
        """Number of compactors with a stream to this coordinator."""

    async def wait_for_change(self) -> None:
        """Returns after the next event. Raises ReopenTable when the ownership has ended."""


async def follow_plans(
    compactions: FollowedCompactions, plans: Sequence[Plan], clock: Clock, pause_s: float = 0.2
) -> AsyncIterator[api.CompactResponse]:
    """Yields `planned`, then `progress` after changes, at most once in ``pause_s`` seconds, then `ended`.

    Yields `planned` alone if there is no plan. Raises ReopenTable when the ownership ends first; the plans stay open.
    """
    yield api.CompactResponse(planned=answers.planned(plans, compactions.compactor_count))
    if not plans:
        return
    before = None
    over = False
    outcomes: dict[str, PlanOutcome] = {}  # the core forgets those of plans that ended long before the others
    while not over:
        # Looked at before the progress, so that the last progress sent is that of the end.
        known = compactions.core.outcomes
        outcomes |= {plan.instant: known[plan.instant] for plan in plans if plan.instant in known}
        over = len(outcomes) == len(plans)
        progress = _progress(compactions, plans, outcomes)
        if progress != before:
            before = progress
            yield api.CompactResponse(progress=progress)
        elif not over:
            await compactions.wait_for_change()
        await clock.sleep(pause_s)  # several changes share one message
    ended = [answers.ended(plan.instant, outcomes[plan.instant]) for plan in plans]
    yield api.CompactResponse(ended=api.CompactionEnded(plans=ended))


def _progress(
    compactions: FollowedCompactions, plans: Sequence[Plan], outcomes: Mapping[str, PlanOutcome]
) -> api.CompactionProgress:
    total = api.CompactionProgress(compactors=compactions.compactor_count)
    for plan in plans:
        known = compactions.core.plans.get(plan.instant) or _of_ended(plan, outcomes.get(plan.instant))
        total.operations += known.operations
        total.finished += known.finished
        total.dropped += known.dropped
        total.running += known.running
        total.bytes += known.bytes
        total.bytes_done += known.bytes_done
    return total


def _of_ended(plan: Plan, outcome: PlanOutcome | None) -> PlanProgress:
    """Returns the progress of a plan that has ended, or that the core does not know yet."""
    size = sum(each.input_bytes for each in plan.operations)
    if outcome is None or outcome.cancelled:
        return PlanProgress(len(plan.operations), 0, 0, 0, size, 0)
    done = size - sum(each.input_bytes for each in outcome.dropped)
    return PlanProgress(len(plan.operations), outcome.finished, len(outcome.dropped), 0, size, done)
