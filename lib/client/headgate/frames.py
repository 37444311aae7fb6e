"""Frames and other sources of Arrow rows, as streams of record batches."""

from collections.abc import Iterable
from typing import Any, cast

import pyarrow as pa

from headgate.errors import HeadgateError, InvalidArgumentError, SchemaError


def stream_of(rows: object) -> pa.RecordBatchReader:
    """The rows as a stream. ``rows``: what has ``__arrow_c_stream__``.

    Raises SchemaError, which names the column, for a frame of pandas that Arrow cannot hold, InvalidArgumentError for other
    data that is no stream of rows.
    """
    try:
        return pa.RecordBatchReader.from_stream(cast("Any", rows))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _as_own(rows, error) from error


def _as_own(rows: Any, error: Exception) -> HeadgateError:
    names = getattr(rows, "columns", None)
    labels = list(names) if isinstance(names, Iterable) else []
    twice = sorted({str(name) for name in labels if labels.count(name) > 1})
    if twice:
        return SchemaError(f"columns are there more than once: {', '.join(twice)}", fix="Rename or drop all but one of each.")
    for name in labels:
        try:
            pa.array(rows[name], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as why:
            fix = "Give the column values of one type, such as frame[name].astype(str)."
            return SchemaError(f"the values of column {str(name)!r} have no common Arrow type: {why}", fix=fix)
    what = f"{type(rows).__name__} is not a stream of rows: {error}"
    return InvalidArgumentError(what, fix="Pass a table, not a single column.")
