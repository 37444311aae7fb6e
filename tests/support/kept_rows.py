"""A producer's channel while a file slice takes no rows: those are kept, the others go on, and later the kept ones follow.

The k-th row that was ever kept has offset k in a channel of its own, so it is there once, too, however often its producer dies.
Newer rows of a key that is kept are kept, too, so that a key's rows stay in their order; each batch is settled before the next.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import headgate
from headgate_tables.arrow import pc
from support.journal import History, Journal
from support.workload import Workload

AGAIN_S = 0.1
"""Between two tries of a slice that takes no rows, at the end, when there is nothing else to do."""


@dataclass(slots=True)
class KeepingChannel:
    """``history``: what earlier attempts wrote down, and this one's opening."""

    table: headgate.Table
    channel: headgate.Channel
    workload: Workload
    journal: Journal
    history: History
    _later: headgate.Channel | None = None
    _refused: headgate.SliceSetAsideError | None = None
    _given: int = 0
    _keys: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.history.kept:
            self._open_later()
            self._keys = _keys(self._rows(self._given, len(self.history.kept)))

    def write(self, rows: pa.Table, last: int) -> None:
        """Of numbers up to ``last``, in their order."""
        if self._keys:
            self._try_kept()
        if not self._keys:
            try:
                self.channel.write(rows, offset=last)
                return
            except headgate.SliceSetAsideError as refused:
                self._set_aside(refused)
                self._settle()
        is_kept = pc.is_in(rows["id"], pa.array(self._keys, pa.string()))
        self._keep(rows.filter(is_kept))
        others = rows.filter(pc.invert(is_kept))
        if others.num_rows:
            self.channel.write(others, offset=last)
        else:
            self.channel.skip(last)
        self._settle()

    def flush(self, level: headgate.Level) -> None:
        """Of what is not kept."""
        while True:
            try:
                return self.channel.flush(level)
            except headgate.SliceSetAsideError as refused:
                self._set_aside(refused)

    def finish(self, timeout: float) -> None:
        """Everything is queryable, what was kept too. Raises NotCommittedError, or the refusal after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        self.flush("queryable")
        while self._keys:
            self._try_kept()
            if self._refused is not None and time.monotonic() > deadline:
                raise self._refused
            if self._keys:
                time.sleep(AGAIN_S)
        self.flush("queryable")
        if self._later is not None:
            self._later.close()

    # --- rows that are not taken ---

    def _set_aside(self, refused: headgate.SliceSetAsideError) -> None:
        self._keep(pa.Table.from_batches([refused.set_aside]))
        if refused.others.num_rows:
            self.channel.write(refused.others, offset=refused.offset)
        else:
            self.channel.skip()

    def _keep(self, rows: pa.Table) -> None:
        if rows.num_rows:
            numbers: list[Any] = rows["number"].to_pylist()
            self.journal.kept(numbers)
            self.history.kept |= dict.fromkeys(numbers, self.history.attempts[-1].number)
            self._keys |= _keys(rows)

    def _settle(self) -> None:
        """Returns when writers have everything that was written, but for what is kept."""
        while True:
            try:
                return self.channel.wait(self.channel.offset, "received")
            except headgate.SliceSetAsideError as refused:
                self._set_aside(refused)

    # --- their second way ---

    def _try_kept(self) -> None:
        """Sends the rows that are due; when all are taken, returns when they are durable, before newer ones of their keys."""
        if not self._push("received"):
            return
        self.flush("durable")
        if self._push("durable") and self._given == len(self.history.kept):
            self.journal.kept_acked(self._given)
            self._keys.clear()

    def _push(self, level: headgate.Level) -> bool:
        """Whether all rows that are due have reached ``level``. A row is due once its own channel has gone past it for good."""
        later = self._open_later()
        try:
            if self._refused is not None:
                later.write(self._refused.rows, offset=self._refused.offset)
                self._refused = None
                later.wait(later.offset, "received")
            if (due := self._due()) > self._given:
                later.write(self._rows(self._given, due), offset=due)
                self._given = due
            if level == "received":
                later.wait(later.offset, level)
            else:
                later.flush(level)
        except headgate.SliceSetAsideError as refused:
            self._refused = refused
        return self._refused is None

    def _due(self) -> int:
        durable = max(self.channel.acks.durable, self.channel.committed_offset)
        return next((at for at, number in enumerate(self.history.kept) if number > durable), len(self.history.kept))

    def _rows(self, first: int, last: int) -> pa.Table:
        """Those at these places, as they were sent at first."""
        kept = [*self.history.kept.items()][first:last]
        found = [self.workload.rows(self.history.producer, number, number, attempt) for number, attempt in kept]
        return pa.concat_tables([self.workload.rows(self.history.producer, 1, 0, 0), *found]).combine_chunks()

    def _open_later(self) -> headgate.Channel:
        if self._later is None:
            self._later = self.table.channel(f"{self.history.producer}-kept")
            self._given = self._later.committed_offset
            self.journal.kept_acked(self._given)
        return self._later


def _keys(rows: pa.Table) -> set[str]:
    keys: list[Any] = rows["id"].to_pylist()
    return set(keys)
