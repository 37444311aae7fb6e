"""The progress of a load: a bar on a terminal, JSON lines for programs, nothing in a pipe."""

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headgate_cli.output import Output
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions

_SHOWN = 5


class LoadProgress:
    """The progress of one file. ``total`` and ``done`` count the file's bytes, batches or rows."""

    def __init__(self, output: Output, file: str, total: int) -> None:
        self._output = output
        self._file = file
        self._total = total
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rows]:,} rows"))
        console = Console(stderr=True)
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=output.json or not console.is_terminal)
        self._task = self._bar.add_task(file, total=max(1, total), rows=0)

    def at(self, done: int, rows: int) -> None:
        """Shows progress. ``rows``: the number of the last row sent."""
        self._bar.update(self._task, completed=done, rows=rows)
        self._output.print_json({"event": "progress", "file": self._file, "done": done, "total": self._total, "row": rows})

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()


def show_left_out(output: Output, path: Path, bad: BadRows, reading: ReadOptions) -> None:
    """Says which rows of a file were left out and why: the first few to people, all to programs."""
    for error in bad.errors:
        output.print_json({"event": "left_out", "file": str(path), "message": error.message})
    for error in bad.errors[:_SHOWN]:
        output.print_text(error.message, fg="yellow")
    if bad.errors:
        where = f"; they are in {reading.reject_file}" if reading.reject_file else ""
        output.print_text(f"{path.name}: {len(bad.errors):,} bad rows were left out{where}.", fg="yellow")
