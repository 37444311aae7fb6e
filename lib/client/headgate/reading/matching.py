"""Rows that a condition selects, as what deletes of them need, read from a table's own storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headgate.errors import InvalidArgumentError
from headgate.reading.library import Options, matching, translated

if TYPE_CHECKING:
    import pyarrow as pa


class Matching:
    """The rows that match in the newest snapshot. Nothing is read before ``tables``."""

    def __init__(self, address: str, options: Options, where: str) -> None:
        """Raises MissingExtraError, InvalidArgumentError, SchemaError and other HeadgateErrors, as a scan."""
        self._rows = matching(address, options, where)

    @property
    def as_of(self) -> str:
        """Completion time of the newest commit in the snapshot."""
        return self._rows.as_of

    @property
    def partitions(self) -> Mapping[str, int]:
        """Rows that were read, by the path of their partition."""
        return self._rows.partitions

    def tables(self) -> Iterator[pa.Table]:
        """Record key, partition and ordering columns, in pieces of bounded size."""
        with translated():
            yield from self._rows.tables()

    def count(self) -> int:
        """Reads them all, for their number alone."""
        return sum(piece.num_rows for piece in self.tables())

    def check_ordered(self) -> None:
        """Raises InvalidArgumentError for rows that a channel's deletes cannot name."""
        with translated():
            unordered = self._rows.count_unordered()
        if unordered:
            raise InvalidArgumentError(
                f"{unordered:,} of the rows have null, or 0 in 32 bits, in the ordering column, which no such delete can have",
                fix="Nothing was deleted. Give these rows another ordering value, or leave them out of the condition.",
            )
