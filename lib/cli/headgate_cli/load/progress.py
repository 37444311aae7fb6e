"""The progress of a load: a bar on a terminal, JSON lines for programs, a line every few seconds in a pipe."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headgate_cli.load.counts import LoadCounts
from headgate_cli.output import Output
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FilePiece, Source
from headgate_tables.system import Clock

_SHOWN = 5
_TICK_S = 1.0
_LINE_S = 10.0
_PATIENCE_S = 3.0
"""So long no row is committed until the reason is asked for."""


class CommittedRows(Protocol):
    """What a channel says of itself."""

    @property
    def committed_offset(self) -> int:
        """The number of the last committed row."""


class LoadProgress:
    """The progress of one file. What it shows never runs ahead of what is committed.

    ``waits_for``: asked, on a thread of its own, when no row is committed for a while; it may take seconds.
    """

    def __init__(
        self, output: Output, source: Source, channel: CommittedRows, waits_for: Callable[[], str], clock: Clock
    ) -> None:
        self._output = output
        self._source = source
        self._channel = channel
        self._waits_for = waits_for
        self._clock = clock
        self._counts = LoadCounts(channel.committed_offset, clock.monotonic())
        self._waiting = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="load-progress", daemon=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[said]}"))
        console = Console(stderr=True)
        self._has_bar = console.is_terminal and not output.json
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not self._has_bar)
        self._task = self._bar.add_task(source.path.name, total=max(1, source.total), said="")
        self._line_at = clock.monotonic() + _LINE_S

    def sent(self, piece: FilePiece) -> None:
        """Shows progress after a piece was sent."""
        with self._lock:
            self._counts.piece_sent(piece)
            self._show()

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_S):
            with self._lock:
                self._show()
                stands = (
                    self._counts.sent > self._counts.committed and self._clock.monotonic() - self._counts.moved >= _PATIENCE_S
                )
                moved = self._counts.moved
            reason = self._waits_for() if stands else ""
            with self._lock:
                self._waiting = reason if self._counts.moved == moved else ""

    def _show(self) -> None:
        now, counts, total = self._clock.monotonic(), self._counts, self._source.total
        if counts.rows_committed(self._channel.committed_offset, now):
            self._waiting = ""
        rate = counts.rows_per_s(now)
        said = f"{counts.committed:,} rows committed, {rate:,} rows/s" + (f"; waiting: {self._waiting}" if self._waiting else "")
        self._bar.update(self._task, completed=counts.done, said=said)
        if not self._has_bar and not self._output.json and now >= self._line_at:
            self._line_at = now + _LINE_S
            click.echo(f"{self._source.path.name}: {100 * counts.done // max(1, total)} %, {said}", err=True)
        self._output.print_json(
            {
                "event": "progress",
                "file": self._source.path.name,
                "done": counts.done,
                "total": total,
                "unit": self._source.unit,
                "row": counts.sent,
                "committed": counts.committed,
                "rows_per_s": rate,
                "waiting": self._waiting,
            }
        )

    def __enter__(self) -> Self:
        self._bar.start()
        self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._ticker.join()
        if kind is None:
            self._waiting = ""
            self._counts.done = self._source.total  # behind the last row there may be a footer, or rows that were left out
            self._show()
        self._bar.stop()


def show_left_out(output: Output, file: str, name: str, bad: BadRows, reading: ReadOptions) -> None:
    """Says which rows of a file were left out and why: the first few to people, all to programs. ``name``: of it alone."""
    for error in bad.errors:
        output.print_json({"event": "left_out", "file": file, "message": error.message})
    for error in bad.errors[:_SHOWN]:
        output.print_text(error.message, fg="yellow")
    if bad.errors:
        where = f"; they are in {reading.reject_file}" if reading.reject_file else ""
        output.print_text(f"{name}: {len(bad.errors):,} bad rows were left out{where}.", fg="yellow")
