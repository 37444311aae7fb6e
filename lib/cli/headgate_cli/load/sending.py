"""Rows on their way from a file to a channel: one that does not fit the table is named by its number, and may be left out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

import headgate
from headgate.errors import RowError
from headgate.row_formats import RowFormats
from headgate.rows import RowFormat
from headgate_cli.load.partitions import check_partitions
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.source import FileBatch, FilePiece, Source, refused


@dataclass(frozen=True, slots=True)
class Sending:
    """How rows are sent: ``operation`` is upsert, delete, or mixed, which ``operation_column`` tells for each row."""

    operation: str
    operation_column: str

    def send(self, channel: headgate.Channel, piece: FilePiece) -> None:
        """Sends the rows of a piece."""
        if self.operation == "delete":
            channel.delete(piece.rows, offset=piece.last_row)
        elif self.operation == "mixed":
            channel.write(piece.rows, operation_column=self.operation_column, offset=piece.last_row)
        else:
            channel.upsert(piece.rows, offset=piece.last_row)

    def form(self, table: headgate.TableInfo, source: Source) -> RowFormat:
        """The form in which the SDK sends the rows of ``source``."""
        formats = RowFormats(table)
        if self.operation == "mixed":
            at = source.schema.get_field_index(self.operation_column)
            number = at >= 0 and pa.types.is_integer(source.schema.field(at).type)
            return formats.mixed(self.operation_column, pa.int8() if number else pa.string())
        return formats.delete if self.operation == "delete" else formats.upsert


def fitting(source: Source, form: RowFormat, bad: BadRows) -> Source:
    """``source`` in ``form``, without the rows that do not fit it. ``bad`` takes these, or raises an error that names the row.

    Where rows are left out, the file is read from its first row also when a load goes on: ``bad`` has to get all of them.
    """

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch in source.batches(0 if bad.takes_more else skip):
            rest = batch
            while rest.rows.num_rows:
                try:
                    rows = next(form.convert(rest.rows))
                    check_partitions(rows, form.partition_by)
                    rest = rest._replace(rows=rows)
                    break
                except RowError as error:
                    what = error.message.removeprefix(f"row {error.row}")
                    wrong = refused(f"{source.path.name}: row {rest.number(error.row)}{what}", error.fix)
                    if rest.raw is None:
                        raise wrong from error
                    row = rest.raw.slice(error.row, 1)
                    bad.take(wrong, row if source.line_of is None else source.line_of(row))
                    rest = rest.without({error.row})
            yield rest

    return replace(source, batches=batches)
