"""Bounds how much writers take into one checkpoint, by how long checkpoints take to flush. Pure.

A checkpoint that takes too long to flush delays every commit behind it, makes clients send more again after a failure, and
delays a drain. After an outage all clients send at once what they have kept.
"""

_FASTEST = 4
"""How many times larger than the measured checkpoint the next may be: a few checkpoints reach what a writer can hold."""
_UNBOUNDED = 1 << 30
"""Arrow bytes above which a writer's memory is the tighter bound."""


class CheckpointSize:
    """``least``: Arrow bytes at one ingest side for the first checkpoints after an outage; 0: checkpoints are never bounded.

    No bound is smaller than that, because of what each checkpoint costs whatever its size. ``target``: seconds of a flush.
    """

    def __init__(self, least: int, target: float) -> None:
        self.limit = _FASTEST * least
        """Arrow bytes for the checkpoint that begins now; 0: not bounded. No client has kept rows for a new table."""
        self._least = least
        self._target = target

    def restart_small(self) -> None:
        """Begins small again, after an abort or a takeover."""
        self.limit = self._least

    def note_flush(self, limit: int, taken: int, seconds: float) -> None:
        """Notes a flush: a checkpoint that began with ``limit`` took ``taken`` bytes at its fullest ingest side."""
        if not self._least:
            return
        fitting = int(taken * self._target / seconds) if seconds > 0 else _UNBOUNDED
        if seconds > self._target:
            self._set(min(fitting, self.limit or fitting))
        elif self.limit and 2 * taken >= limit:
            # A checkpoint that was less than half full says nothing about larger ones.
            self._set(max(min(fitting, _FASTEST * limit), self.limit))

    def _set(self, limit: int) -> None:
        self.limit = 0 if limit >= _UNBOUNDED else max(limit, self._least)
