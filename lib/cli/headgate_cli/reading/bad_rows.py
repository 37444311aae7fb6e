"""What becomes of rows that cannot be loaded: the first one ends the load, or they are left out, counted and kept for a file."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import refused


class BadRows:
    """The bad rows of one pass over one file. Memory holds at most ``max_errors`` of them."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._rows: list[str | pa.RecordBatch] = []
        self._known: set[str] = set()
        self.errors: list[CommandError] = []
        """Why each row was left out."""

    @property
    def takes_more(self) -> bool:
        """Whether a load goes on behind a bad row."""
        return self._options.skip_bad

    def take(self, error: CommandError, row: str | pa.RecordBatch) -> None:
        """Leaves a row out. ``row``: its line, or the row of a file that knows its types.

        A row counts once, also when SQL reads the file several times. Raises ``error`` where the first one ends the load, or one
        for too many.
        """
        if not self._options.skip_bad:
            raise error
        if error.message in self._known:
            return
        if len(self.errors) >= self._options.max_errors:
            raise refused(
                f"{error.message}; {len(self.errors)} bad rows were left out before it, and --max-errors allows no more",
                f"{error.fix} Or allow more: --max-errors {10 * max(1, self._options.max_errors)}.",
            )
        self._known.add(error.message)
        self.errors.append(error)
        self._rows.append(row)

    def write(self, path: Path, header: str) -> None:
        """Writes the rows that were left out, none without any, as a file that is loaded after mending: lines, or Parquet."""
        lines = [each for each in self._rows if isinstance(each, str)]
        if lines:
            text = "".join(each if each.endswith("\n") else each + "\n" for each in (*([header] if header else []), *lines))
            path.write_bytes(text.encode(self._options.encoding or "utf-8"))
        elif self._rows:
            pq.write_table(pa.Table.from_batches([each for each in self._rows if not isinstance(each, str)]), path)


def csv_line(rows: pa.RecordBatch, delimiter: str) -> str:
    """Rows of texts as lines that are read as they were: null is nothing, an empty text has quotes."""
    sink = io.BytesIO()
    form = pa_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
    pa_csv.write_csv(rows, sink, form)
    return sink.getvalue().decode()
