"""The output of commands: text for people, or one JSON object a line. Errors go to stderr."""

import json as json_text
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import click
from rich.cells import cell_len, set_cell_size

from headgate_cli.columns import GAP, fitting_widths, left_out_note, natural_widths

Record = Mapping[str, object]
"""One object of the JSON output: values by name."""

json_option = click.option(
    "--json", is_flag=True, expose_value=False, help="One JSON object a line on stdout; errors as JSON on stderr."
)
"""``main.run`` reads it before click does, so that errors of the command line itself are JSON too."""


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_INSTEAD: Final = "A wider window or --json shows them."


class Output:
    """``json``: stdout gets one object a line and nothing else, for programs. ``width``: cells of a screen that is printed to
    through something else; None: as wide as the terminal, and without one as wide as the values.
    """

    def __init__(self, *, json: bool, width: int | None = None) -> None:
        self.json = json
        self._width = width

    @property
    def width(self) -> int | None:
        """Cells of a line; None: a pipe has no width, and line tools could not read values that are folded."""
        return self._width or (shutil.get_terminal_size().columns if sys.stdout.isatty() else None)

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

    def print_warning(self, message: str) -> None:
        """Prints to stderr what a command says to people while it goes on. For programs an error is all of stderr."""
        if not self.json:
            click.secho(f"headgate: {message}", err=True, fg="yellow")

    def print_records(
        self,
        records: Sequence[Record],
        columns: Sequence[str] | None = None,
        *,
        empty: str = "none",
        data: bool = False,
        instead: str = _INSTEAD,
    ) -> None:
        """Prints records of equal fields: as a table of ``columns`` for people, one object a record for programs.

        ``empty``: the text for no records. ``data``: values are the user's own: digits are not grouped, as 1806 may be a flight,
        and long texts are cut. ``instead``: what to do to see columns that do not fit the terminal.
        """
        if self.json:
            for record in records:
                self.print_json(record)
        elif not records:
            self.print_text(empty)
        else:
            show = _ungrouped if data else _same
            self.print_table(
                columns or list(records[0]),
                [[show(record[name]) for name in columns or record] for record in records],
                cut=data,
                instead=instead,
            )

    def print_record(self, record: Record, *, data: bool = False) -> None:
        """Prints one record: ``name  value`` lines for people, an object for programs. ``data``: see ``print_records``."""
        self.print_json(record)
        width = max(map(cell_len, record), default=0)
        for name, value in record.items():
            self.print_text(f"{set_cell_size(name, width)}  {cell(_ungrouped(value) if data else value)}")

    def print_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, cut: bool = False, instead: str = _INSTEAD
    ) -> None:
        """Prints a table for people: on a terminal the columns that fit, and which do not.

        ``cut``: texts that are too long for their column end with "…" instead of being folded.
        """
        from rich.table import Table
        from rich.text import Text

        from headgate_cli.console import PipedConsole

        texts = [[cell(value) for value in row] for row in rows]
        naturals = natural_widths(columns, texts)
        whole = sum(naturals) + GAP * len(naturals)
        width = self.width
        widths = naturals if width is None else fitting_widths(naturals, width)
        table = Table(box=None, header_style="bold", pad_edge=False)
        for position, (name, cells) in enumerate(zip(columns, widths, strict=False)):
            numbers = all(isinstance(row[position], int | float) for row in rows)
            overflow: Literal["ellipsis", "fold"] = "ellipsis" if cut else "fold"
            table.add_column(name, justify="right" if numbers else "left", overflow=overflow, no_wrap=cut, width=cells)
        for row in texts:
            table.add_row(*(Text(text) for text in row[: len(widths)]))
        # A column of that width leaves the last one a gap, too: a terminal would break its line.
        PipedConsole(width=whole if width is None else width).print(table, crop=False)
        if width is not None and (note := left_out_note(columns, len(widths), instead, width)):
            click.secho(note, dim=True)

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
    return _CONTROL.sub(_escaped, str(value))


def _escaped(found: "re.Match[str]") -> str:
    """As in Python's literals: what a text holds must not move the cursor, or break a line."""
    return repr(found[0])[1:-1]


def counted(number: int, what: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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


def as_text(value: object) -> str:
    """A value that JSON lacks, as text: binary ones hexadecimal."""
    return value.hex() if isinstance(value, bytes) else str(value)
