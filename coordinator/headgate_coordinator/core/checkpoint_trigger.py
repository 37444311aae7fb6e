"""When the filling checkpoint ends and when the one before it is late: what asks for a barrier, what forbids it. Pure (RO1,
RO7).
"""

from collections.abc import Sequence

from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.policy import CheckpointPolicy, TriggerConditions
from headgate_coordinator.core.pressure import Backpressure
from headgate_coordinator.core.sequence import CheckpointSequence


class CheckpointTrigger:
    """``asked``: a client's flush, a limit half used or a full bucket side wants the next barrier soon. Monotonic seconds."""

    def __init__(self, policy: CheckpointPolicy, now: float) -> None:
        self.requested = False
        self._policy = policy
        self._dirty_since: float | None = None
        self._since = now
        self._recovering = True

    def begin_wait(self, now: float, *, recovering: bool) -> None:
        """Waits for the next reason to end a checkpoint; ``recovering``: no checkpoint of the generation has had a barrier."""
        self.requested, self._dirty_since, self._since, self._recovering = False, None, now, recovering

    def note_uncommitted(self, filling: Checkpoint, uncommitted: Sequence[int], now: float) -> None:
        """``uncommitted``: Arrow bytes by writer that are in no checkpoint which flushes already.

        Rows at a bucket side count too: no accepted row is left without a checkpoint, whatever was heard of loads.
        """
        dirty = filling.instant_wanted or any(uncommitted)
        if not dirty:
            self._dirty_since = None
        elif self._dirty_since is None:
            self._dirty_since = now

    def allows_barrier(self, checkpoints: CheckpointSequence, backpressure: Backpressure) -> bool:
        """Only when the older checkpoint is decided (rule RO1), and the files of the filling one have room."""
        return checkpoints.older is None and bool(checkpoints.filling.members) and backpressure.has_room_for(checkpoints.filling)

    def barrier_due_at(self, *, at_once: bool, uncommitted: Sequence[int], stretch: int) -> float | None:
        """From when on the filling checkpoint ends, where that is allowed; None: nothing wants it. See ``TriggerConditions``."""
        fullest = max(uncommitted, default=0)
        return self._policy.barrier_due_at(
            TriggerConditions(at_once, self.requested, self._dirty_since, fullest, self._since, self._recovering, stretch)
        )

    def flush_deadline(self, flushing: Checkpoint | None) -> float | None:
        """When the checkpoint that flushes is given up, unless more is heard of it; None: there is none, or it waits for us."""
        if flushing is None or not flushing.waits_for_writers:
            return None
        return flushing.progressed_at + self._policy.checkpoint_timeout

    def why_late(self, flushing: Checkpoint | None, now: float) -> str:
        """Why the checkpoint has to be given up now; "": it has not."""
        late_at = self.flush_deadline(flushing)
        if late_at is None or flushing is None or late_at > now:
            return ""
        nothing = f"nothing of checkpoint {flushing.number} went on for {self._policy.checkpoint_timeout:g} s"
        return f"{nothing}; missing: {', '.join(flushing.missing_reports())}"
