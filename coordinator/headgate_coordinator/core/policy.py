"""Settings of checkpoints, and when the next barrier is due (rule RO7). Pure."""

from dataclasses import dataclass
from math import inf

from headgate_tables.backoff import Backoff


@dataclass(frozen=True, slots=True)
class TriggerConditions:
    """What asks for the next barrier. Times are monotonic seconds.

    ``at_once``: a writer joins or leaves, an open waits for rows of its channel, or the table is handed over. ``requested``:
    by a client's flush, or because half of a writer's limit is used. ``uncommitted_since``: when the first uncommitted bytes of
    the filling checkpoint were reported. ``fullest``: the most uncommitted bytes at one writer. ``last_barrier_at``: when the
    last barrier was sent, or the generation began. ``recovering``: until a checkpoint of this generation has had its barrier.
    ``stretch``: how many times further apart checkpoints are while log files wait for compaction.
    """

    at_once: bool
    requested: bool
    uncommitted_since: float | None
    fullest: int
    last_barrier_at: float
    recovering: bool
    stretch: int = 1


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """Settings of checkpoints; seconds and bytes.

    ``checkpoint_interval``: age of uncommitted rows before they are committed; each checkpoint costs one file a bucket and one
    slot. ``checkpoint_min_interval``: two checkpoints that clients ask for are at least this far apart, and a table recovers from
    an abort in about half this time; below ``checkpoint_interval``. ``checkpoint_bytes``: Arrow bytes at one writer that end a
    checkpoint before its time; below the writer's memory limit. ``checkpoint_timeout``: a checkpoint that makes no progress for
    so long between its barrier and its last write status is aborted and its rows are sent again; above what the slowest single
    file takes. ``writer_timeout``: a writer that does not let a channel go for so long is cut off, which rewinds the whole table.
    ``first_checkpoint_bytes``: what each writer takes from clients into the first checkpoints behind an outage; see
    ``CheckpointSize``. ``channel_retention``: a channel that is idle for so long is forgotten, and its producer starts over
    at offset 0; above the longest pause after which a producer resumes. inf: none is forgotten.
    """

    checkpoint_interval: float = 10.0
    checkpoint_min_interval: float = 0.5
    checkpoint_bytes: int = 256 << 20
    checkpoint_timeout: float = 30.0
    writer_timeout: float = 1.5
    first_checkpoint_bytes: int = 8 << 20
    channel_retention: float = inf

    def barrier_due_at(self, conditions: TriggerConditions) -> float | None:
        """Returns when the next barrier may be sent, once the checkpoint before is decided; None: nothing asks for one."""
        if conditions.at_once:
            return conditions.last_barrier_at
        times = []
        if conditions.requested or conditions.fullest >= self.checkpoint_bytes:
            times.append(conditions.last_barrier_at + self.checkpoint_min_interval * conditions.stretch)
        if conditions.uncommitted_since is not None and not conditions.recovering:
            times.append(conditions.last_barrier_at + self.checkpoint_interval * conditions.stretch)
        elif conditions.uncommitted_since is not None:
            # All clients open their channels anew: a barrier at the first bytes would make the others wait for the interval. Not
            # longer, because nothing has been committed since the abort or the takeover.
            times.append(max(conditions.last_barrier_at, conditions.uncommitted_since) + self.checkpoint_min_interval / 2)
        return min(times, default=None)

    def retry_pause(self, failures: int) -> float:
        """Seconds before the next try after so many failures in a row: none at first, then twice as long each time."""
        return Backoff(self.checkpoint_min_interval, self.checkpoint_interval).after(failures)

    @property
    def flush_target(self) -> float:
        """Seconds that a flush may take, from barrier to last file: longer ones delay commits, and a drain."""
        return max(min(self.checkpoint_interval, self.checkpoint_timeout / 6), min(1.0, self.checkpoint_timeout / 2))
