"""The door to the table library, which reads rows from a table's own storage: an extra of the SDK, imported when it is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headgate import errors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from headgate_tables.errors import TablesError
    from headgate_tables.face.owner import Table
    from headgate_tables.face.reader import Matches, Rows

Moment = str | datetime
"""An instant or completion time of the timeline, ISO text (UTC without a zone), "10 minutes ago", or a datetime with a zone."""

Options = Mapping[str, str] | None
"""Settings of an object store, beside those of the environment."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows and columns to read, see ``Readable.scan``."""

    columns: Sequence[str] | None = None
    where: str | pc.Expression | None = None
    partitions: Sequence[str | Mapping[str, object]] | None = None
    as_of: Moment | None = None
    since: Moment | None = None
    read_optimized: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A table as it was found at its address."""

    url: str
    name: str
    schema: pa.Schema


def find(address: str, options: Options) -> Found:
    """The table there. Raises HeadgateError."""
    with translated(), _open(address, options) as table:
        return Found(table.url, table.name, table.schema)


def select(address: str, options: Options, query: Query) -> Rows:
    """The rows of a query, of which nothing is read yet but the table's timeline. Raises HeadgateError."""
    with translated(), _open(address, options) as table:
        return table.scan(
            query.columns,
            query.partitions,
            query.where,
            mode="read_optimized" if query.read_optimized else "snapshot",
            as_of=query.as_of,
            since=query.since,
        )


def matching(address: str, options: Options, where: str) -> Matches:
    """The rows that a condition selects now, of which nothing is read yet. Raises HeadgateError."""
    with translated(), _open(address, options) as table:
        return table.matching(where)


def _open(address: str, options: Options) -> Table:
    with needs("read"):
        from headgate_tables.opening import open_table
    return open_table(address, storage_options=options)


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """For imports: raises MissingExtraError, with the line for pip, when a package of this extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise errors.MissingExtraError(
            f"this needs {package}, which is not installed", fix=f"Run: pip install 'headgate[{extra}]'"
        ) from error


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises the errors of the table library as the SDK's own, of the same next step."""
    with needs("read"):
        from headgate_tables.errors import TablesError
    try:
        yield
    except TablesError as error:
        raise _as_own(error) from error


def _as_own(error: TablesError) -> errors.HeadgateError:
    from headgate_tables import errors as tables

    kinds: Sequence[tuple[type[TablesError], type[errors.HeadgateError]]] = (
        (tables.StoreDeniedError, errors.PermissionDeniedError),
        (tables.RetryLater, errors.UnavailableError),
        (tables.ReopenTable, errors.UnavailableError),
        (tables.RangeGoneError, errors.RangeGoneError),
        (tables.NotATableError, errors.TableNotFoundError),
        (tables.SchemaError, errors.SchemaError),
        (tables.FixCall, errors.InvalidArgumentError),
    )
    kind = next((own for theirs, own in kinds if isinstance(error, theirs)), errors.UnreadableTableError)
    return kind(error.message, fix=error.fix)
