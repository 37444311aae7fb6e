"""A file as a stream of numbered pieces that fit into messages. Memory holds a few batches, never the file."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

BLOCK_BYTES = 4 << 20
PIECE_ROWS = 1 << 16
_LOADED_WHOLE = "Rows sent before stay; the corrected file is loaded whole, as upserts."
_PIECE_BYTES = 4 << 20  # a message may have 8 MiB; Arrow's count of bytes is close, not exact


class FilePiece(NamedTuple):
    """Rows that fit into one message. ``last_row``: number of the last one, from 1; ``done``: how far the file is
    read, without a batch whose last rows are in later pieces.
    """

    rows: pa.RecordBatch
    last_row: int
    done: int


class FileBatch(NamedTuple):
    """A batch as the reader gives it. ``before``: rows of the file before it; ``done``: how far the file is read.

    ``raw``: the same rows as the file has them, for a file of rejected ones; None where no row of the file is one of these.
    ``left_out``: which rows of the batch, as it was, are missing.
    """

    rows: pa.RecordBatch
    before: int
    done: int
    raw: pa.RecordBatch | None = None
    left_out: tuple[int, ...] = ()

    def number(self, at: int) -> int:
        """The number in the file, from 1, of the row at ``at``."""
        for gap in self.left_out:
            at += gap <= at
        return self.before + at + 1

    def without(self, wrong: Collection[int]) -> "FileBatch":
        """The batch without the rows at ``wrong``."""
        if not wrong:
            return self
        kept = pa.array([at for at in range(len(self.rows)) if at not in wrong], pa.int64())
        gone = {self.number(at) - self.before - 1 for at in wrong} | set(self.left_out)
        raw = None if self.raw is None else self.raw.take(kept)
        return self._replace(rows=self.rows.take(kept), raw=raw, left_out=tuple(sorted(gone)))


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load. ``total`` counts ``unit``: rows, batches or bytes. ``batches(skip)`` may omit ``skip`` rows.

    ``header``: the first line of a file of rows that were left out; ``line_of``: a line of it, from a row of a batch's ``raw``.
    Files that know their types have None: such rows go into Parquet.
    """

    path: Path
    schema: pa.Schema
    total: int
    unit: str
    batches: Callable[[int], Iterator[FileBatch]]
    header: str = ""
    line_of: Callable[[pa.RecordBatch], str] | None = None

    def pieces(self, skip: int) -> Iterator[FilePiece]:
        """Yields all rows after the first ``skip``. Raises CommandError for a damaged file."""
        reached = 0
        try:
            for batch, before, done, *_ in self.batches(skip):
                first = min(batch.num_rows, max(0, skip - before))
                for start, rows in _cut(batch.slice(first)):
                    end = first + start + rows.num_rows
                    yield FilePiece(rows, before + end, done if end == batch.num_rows else reached)
                reached = done
        except pa.ArrowException as error:
            raise unreadable(self.path, error) from error


def numbered(batches: Iterable[pa.RecordBatch], done: Callable[[], int], before: int = 0) -> Iterator[FileBatch]:
    """``batches`` with the rows before each. ``done``: how far the file is read; ``before``: rows before the first batch."""
    for batch in batches:
        yield FileBatch(batch, before, done())
        before += batch.num_rows


def unreadable(path: Path, error: Exception, fix: str = "") -> CommandError:
    """The error for a file that its reader refuses; rows that were sent before it stay."""
    reason = str(error).partition("\n")[0]
    return CommandError(
        f"{path.name}: {reason}",
        fix=fix or f"Correct the file, or describe it with --format or --null. {_LOADED_WHOLE}",
        code=ExitCode.FIX_CALL,
    )


def refused(message: str, fix: str) -> CommandError:
    """An error of a file or its description."""
    return CommandError(message, fix=fix, code=ExitCode.FIX_CALL)


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields slices of about equal rows within the limits, with the first row of each."""
    if not batch.num_rows:
        return
    most = max(1, min(PIECE_ROWS, batch.num_rows * _PIECE_BYTES // max(1, batch.nbytes)))
    rows = -(-batch.num_rows // -(-batch.num_rows // most))
    for start in range(0, batch.num_rows, rows):
        yield start, batch.slice(start, rows)
