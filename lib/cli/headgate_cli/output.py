"""Everything that a command says: text for people, or one JSON object a line; errors go to stderr."""

import json as json_text
from collections.abc import Mapping, Sequence
from typing import Any

import click

json_option = click.option(
    "--json", is_flag=True, expose_value=False, help="One JSON object a line on stdout; errors as JSON on stderr."
)
"""Read from the command line before click does (``main.run``), so that errors of the command line itself obey it too."""


class Output:
    """``json``: one object a line on stdout and nothing else there, so that a program can read it."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def say(self, text: str, **style: Any) -> None:
        """For people only."""
        if not self.json:
            click.secho(text, **style)

    def emit(self, record: Mapping[str, Any]) -> None:
        """For programs only."""
        if self.json:
            click.echo(encode(record))

    def aside(self, record: Mapping[str, Any], text: str) -> None:
        """What is no row of the answer: a last line for people, on stderr for programs."""
        if self.json:
            click.echo(encode(record), err=True)
        else:
            self.say(text)

    def records(
        self,
        records: Sequence[Mapping[str, Any]],
        columns: Sequence[str] | None = None,
        *,
        empty: str = "none",
        data: bool = False,
    ) -> None:
        """A table of equal records; ``columns`` chooses and orders what people see. Programs get one line a record.

        ``data``: people's own values, whose digits are not grouped: 1806 may be a flight and not a number.
        """
        if self.json:
            for record in records:
                self.emit(record)
        elif not records:
            self.say(empty)
        else:
            show = _ungrouped if data else _same
            self.table(columns or list(records[0]), [[show(record[name]) for name in columns or record] for record in records])

    def record(self, record: Mapping[str, Any]) -> None:
        """One record: a line for programs, ``name  value`` lines for people."""
        self.emit(record)
        width = max(map(len, record), default=0)
        for name, value in record.items():
            self.say(f"{name:<{width}}  {cell(value)}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """For people: as wide as the terminal, or as the values when the output goes elsewhere."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold", pad_edge=False)
        for position, name in enumerate(columns):
            numbers = all(isinstance(row[position], int | float) for row in rows)
            table.add_column(name, justify="right" if numbers else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell(value)) for value in row))
        console = Console()
        if not console.is_terminal:
            # A pipe has no width of its own; folded values could not be read by line tools.
            console = Console(width=max(80, sum(max(len(cell(v)) for v in [n, *c]) + 2 for n, c in _columns(columns, rows))))
        console.print(table)

    def error(self, message: str, fix: str, kind: str, exit_code: int) -> None:
        """On stderr: what is wrong and the next step."""
        if self.json:
            record = {"error": {"kind": kind, "message": message, "fix": fix, "exit_code": exit_code}}
            click.echo(encode(record), err=True)
        else:
            click.secho(f"headgate: {message}", err=True, fg="red")
            if fix:
                click.echo(f"  {fix}", err=True)


def encode(record: Mapping[str, Any]) -> str:
    """One line of JSON; what JSON has no type for (times, decimals) becomes text."""
    return json_text.dumps(record, default=_as_text, ensure_ascii=False)


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "-"
    return str(value)


def size(count: int) -> str:
    """Bytes in the unit that keeps three digits."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _ungrouped(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _same(value: Any) -> Any:
    return value


def _columns(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[tuple[str, list[Any]]]:
    return [(name, [row[position] for row in rows]) for position, name in enumerate(columns)]


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
