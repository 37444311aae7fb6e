"""How much writers take into one checkpoint, from how long checkpoints take to flush. Pure.

A checkpoint that is larger than what can be flushed in good time holds up every commit behind it, loses more when something
breaks, and keeps a coordinator from draining. Behind an outage all clients send at once what they have kept.
"""

_FASTEST = 4
"""So many times more a checkpoint takes than the one that was measured: a few checkpoints reach what a writer can hold."""
_UNBOUNDED = 1 << 30
"""Arrow bytes from which on the memory of a writer is the tighter bound."""


class CheckpointSize:
    """``least``: Arrow bytes at one ingest side that the first checkpoints behind an outage take; 0: checkpoints are never
    bounded.

    None is made smaller than that: what a checkpoint costs whatever its size would eat everything up. ``target``: seconds of a
    flush.
    """

    def __init__(self, least: int, target: float) -> None:
        self.limit = _FASTEST * least
        """For the checkpoint that begins now; 0: not bounded. Nothing is known of a new table, and nobody has kept rows for
        it."""
        self._least = least
        self._target = target

    def restart_small(self) -> None:
        """Behind an abort or a takeover."""
        self.limit = self._least

    def note_flush(self, limit: int, taken: int, seconds: float) -> None:
        """A checkpoint that began with ``limit`` took ``taken`` bytes at its fullest ingest side, and so long to flush."""
        if not self._least:
            return
        fitting = int(taken * self._target / seconds) if seconds > 0 else _UNBOUNDED
        if seconds > self._target:
            self._set(min(fitting, self.limit or fitting))
        elif self.limit and 2 * taken >= limit:
            # A checkpoint that was not half full says nothing of larger ones.
            self._set(max(min(fitting, _FASTEST * limit), self.limit))

    def _set(self, limit: int) -> None:
        self.limit = 0 if limit >= _UNBOUNDED else max(limit, self._least)
