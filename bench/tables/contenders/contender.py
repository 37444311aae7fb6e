"""What the upsert benchmark asks of a table format's writer."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

KEY, ORDERING, PARTITION = "event_id", "version", "dt"


class Contender(Protocol):
    """An empty table when made (``folder``, ``schema``, ``partitioned``); then one ``upsert`` after the other."""

    @property
    def processes(self) -> Sequence[int]:
        """Ids of running child processes that work for it."""

    def prepare(self, rows: pa.Table) -> Any:
        """The rows as ``upsert`` takes them; not measured, so for those only that cannot take Arrow data."""

    def upsert(self, rows: Any) -> None:
        """One commit: rows inserted, or replacing those of the same key and no larger version. Visible when this returns."""

    def states(self) -> Iterator[tuple[str, pa.Table]]:
        """All rows of the table as each of the readers that the format has here sees them."""
