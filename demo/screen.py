"""The demo's output: a bar and notes on a terminal, plain lines elsewhere, JSON lines for programs."""

import json
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

_PLAIN_EVERY_S = 5.0


class Screen:
    """``json_lines``: one object a line on stdout, otherwise text for people."""

    def __init__(self, *, json_lines: bool) -> None:
        self._json = json_lines
        self._console = Console(highlight=False, soft_wrap=True)
        self._live = self._console.is_terminal and not json_lines
        self._bar = Progress(
            TextColumn("{task.fields[clock]:>6.1f} s"),
            BarColumn(bar_width=30),
            TextColumn(
                "{task.completed:>9,.0f} of {task.total:,.0f} events  {task.fields[rate]:>7,.0f}/s  fresh in {task.fields[fresh]}"
            ),
            console=self._console,
            disable=not self._live,
            transient=True,
        )
        self._task: TaskID | None = None
        self._began = time.monotonic()
        self._printed = 0.0

    def begin(self, total: int) -> None:
        """Starts the clock of notes and bar."""
        self._began = time.monotonic()
        self._task = self._bar.add_task("events", total=total, clock=0.0, rate=0.0, fresh="-")
        self._bar.start()

    def tick(self, queryable: int, total: int, rate: float, fresh: float | None) -> None:
        """Shows progress: ``queryable`` of ``total`` events, ``rate`` a second, ``fresh``: seconds from sending to queryable."""
        clock = time.monotonic() - self._began
        text = "-" if fresh is None else f"{fresh:.2f} s"
        if self._live and self._task is not None:
            self._bar.update(self._task, completed=queryable, clock=clock, rate=rate, fresh=text)
        elif clock - self._printed >= _PLAIN_EVERY_S:
            self._printed = clock
            record = {"seconds": round(clock, 1), "queryable": queryable, "rate": round(rate), "fresh_s": fresh}
            self._say(
                f"{clock:6.1f} s  {queryable:>9,} of {total:,} events  {rate:>7,.0f}/s  fresh in {text}", "progress", record
            )

    def note(self, text: str, event: str, style: str = "", **fields: object) -> None:
        """Shows an event of the run, after the clock once rows flow."""
        clock = time.monotonic() - self._began
        before = f"{clock:6.1f} s  " if self._task is not None else ""
        self._say(f"[{style}]{before}{text}[/]" if style else f"{before}{text}", event, {"seconds": round(clock, 1), **fields})

    def end(self) -> None:
        """Removes the bar; notes stay."""
        self._bar.stop()
        self._task = None

    def report(self, lines: list[str], record: Mapping[str, object]) -> None:
        """Shows the verdict."""
        self._say("\n".join(["", *lines]), "report", record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def _say(self, text: str, event: str, record: Mapping[str, object]) -> None:
        if self._json:
            sys.stdout.write(json.dumps({"event": event, **record}) + "\n")
            sys.stdout.flush()
        else:
            self._console.print(text)
