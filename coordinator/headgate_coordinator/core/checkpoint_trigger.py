"""Decides when the filling checkpoint gets its barrier, and when the one before it is late. Pure (RO1, RO7)."""

from collections.abc import Sequence

from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.policy import CheckpointPolicy, TriggerConditions
from headgate_coordinator.core.pressure import Backpressure
from headgate_coordinator.core.sequence import CheckpointSequence


class CheckpointTrigger:
    """``requested``: a client's flush, a limit half used or a full bucket side asks for the next barrier soon. Monotonic
    seconds.
    """

    def __init__(self, policy: CheckpointPolicy, now: float) -> None:
        self.requested = False
        self._policy = policy
        self._since = now
        self._recovering = True

    def begin_wait(self, now: float, *, recovering: bool) -> None:
        """Forgets what asked for the last barrier; ``recovering``: no checkpoint of the generation has had a barrier."""
        self.requested, self._since, self._recovering = False, now, recovering

    def note_uncommitted(self, filling: Checkpoint, uncommitted: Sequence[int], now: float) -> None:
        """Notes since when there are uncommitted rows. ``uncommitted``: Arrow bytes by writer, without those being flushed.

        Rows at a bucket side count too: every accepted row gets a checkpoint, whatever loads were reported.
        """
        dirty = filling.instant_wanted or any(uncommitted)
        if not dirty:
            filling.dirty_since = None
        elif filling.dirty_since is None:
            filling.dirty_since = now

    def allows_barrier(self, checkpoints: CheckpointSequence, backpressure: Backpressure) -> bool:
        """Whether the older checkpoint is decided (rule RO1), and slices have room for the files of the filling one."""
        return checkpoints.older is None and bool(checkpoints.filling.members) and backpressure.has_room_for(checkpoints.filling)

    def barrier_due_at(self, filling: Checkpoint, *, at_once: bool, uncommitted: Sequence[int], stretch: int) -> float | None:
        """Returns when the filling checkpoint may get its barrier; None: nothing asks for one. See ``TriggerConditions``."""
        fullest = max(uncommitted, default=0)
        return self._policy.barrier_due_at(
            TriggerConditions(at_once, self.requested, filling.dirty_since, fullest, self._since, self._recovering, stretch)
        )

    def flush_deadline(self, flushing: Checkpoint | None) -> float | None:
        """When the flushing checkpoint is aborted unless it progresses; None: there is none, or it waits for this coordinator."""
        if flushing is None or not flushing.waits_for_writers:
            return None
        return flushing.progressed_at + self._policy.checkpoint_timeout

    def why_late(self, flushing: Checkpoint, now: float) -> str:
        """Why the checkpoint has to be aborted now; "": it need not be."""
        late_at = self.flush_deadline(flushing)
        if late_at is None or late_at > now:
            return ""
        nothing = f"checkpoint {flushing.number} made no progress for {self._policy.checkpoint_timeout:g} s"
        return f"{nothing}; missing: {', '.join(flushing.missing_reports())}"
