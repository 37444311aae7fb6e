"""The output of commands: text for people, or one JSON object a line. Errors go to stderr."""

import json as json_text
from collections.abc import Mapping, Sequence

import click

Record = Mapping[str, object]
"""One object of the JSON output: values by name."""

json_option = click.option(
    "--json", is_flag=True, expose_value=False, help="One JSON object a line on stdout; errors as JSON on stderr."
)
"""``main.run`` reads it before click does, so that errors of the command line itself are JSON too."""


class Output:
    """``json``: stdout gets one object a line and nothing else, for programs."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def print_text(self, text: str, *, fg: str | None = None, bold: bool = False) -> None:
        """Prints a line for people; nothing with ``json``."""
        if not self.json:
            click.secho(text, fg=fg, bold=bold)

    def print_json(self, record: Record) -> None:
        """Prints an object for programs; nothing without ``json``."""
        if self.json:
            click.echo(encode(record))

    def print_note(self, record: Record, text: str) -> None:
        """Prints a note beside the answer: a last line for people, an object on stderr for programs."""
        if self.json:
            click.echo(encode(record), err=True)
        else:
            self.print_text(text)

    def print_records(
        self,
        records: Sequence[Record],
        columns: Sequence[str] | None = None,
        *,
        empty: str = "none",
        data: bool = False,
    ) -> None:
        """Prints records of equal fields: as a table of ``columns`` for people, one object a record for programs.

        ``empty``: the text for no records. ``data``: values are the user's own, so digits are not grouped: 1806 may be a flight.
        """
        if self.json:
            for record in records:
                self.print_json(record)
        elif not records:
            self.print_text(empty)
        else:
            show = _ungrouped if data else _same
            self.print_table(
                columns or list(records[0]), [[show(record[name]) for name in columns or record] for record in records]
            )

    def print_record(self, record: Record) -> None:
        """Prints one record: ``name  value`` lines for people, an object for programs."""
        self.print_json(record)
        width = max(map(len, record), default=0)
        for name, value in record.items():
            self.print_text(f"{name:<{width}}  {cell(value)}")

    def print_table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Prints a table for people, as wide as the terminal; as wide as its values when stdout is not a terminal."""
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
            # A pipe has no width, and line tools could not read folded values.
            console = Console(width=max(80, sum(max(len(cell(v)) for v in [n, *c]) + 2 for n, c in _columns(columns, rows))))
        console.print(table)

    def print_error(self, message: str, fix: str, kind: str, exit_code: int) -> None:
        """Prints an error and its next step to stderr."""
        if self.json:
            record = {"error": {"kind": kind, "message": message, "fix": fix, "exit_code": exit_code}}
            click.echo(encode(record), err=True)
        else:
            click.secho(f"headgate: {message}", err=True, fg="red")
            if fix:
                click.echo(f"  {fix}", err=True)


def encode(record: Record) -> str:
    """One line of JSON. Types that JSON lacks (times, decimals) become text."""
    return json_text.dumps(record, default=as_text, ensure_ascii=False)


def cell(value: object) -> str:
    """A value as text for people."""
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
    """A number of bytes as text, in the unit that leaves at most four digits."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _ungrouped(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _same(value: object) -> object:
    return value


def _columns(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[tuple[str, list[object]]]:
    return [(name, [row[position] for row in rows]) for position, name in enumerate(columns)]


def as_text(value: object) -> str:
    """A value that JSON lacks, as text: binary ones hexadecimal."""
    return value.hex() if isinstance(value, bytes) else str(value)
