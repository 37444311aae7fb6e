"""The progress of long work, such as a compaction: a bar on a terminal, JSON lines for programs, nothing in a pipe."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from headgate_cli.output import Output, Record


class WorkBar:
    """The progress of one command. ``doing``: what people read beside the bar."""

    def __init__(self, output: Output, doing: str) -> None:
        self._output = output
        columns = (TextColumn(doing), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"))
        console = Console(stderr=True)
        self._bar = Progress(*columns, TimeElapsedColumn(), console=console, disable=output.json or not console.is_terminal)
        self._task = self._bar.add_task("", total=None, note="")

    def at(self, record: Record, done: int, total: int, note: str) -> None:
        """Shows progress: ``done`` of ``total`` on the bar, ``record`` for programs."""
        self._bar.update(self._task, completed=done, total=max(total, 1), note=note)
        self._output.print_json({"event": "progress", **record})

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()
