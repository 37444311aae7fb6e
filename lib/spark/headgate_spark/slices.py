"""File slices on their way to tasks, and their rows there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate_spark.carried import carrying
from headgate_spark.types import fitted
from headgate_tables.face.reader import SliceQuery
from headgate_tables.opening import open_folder
from headgate_tables.system import System


@dataclass(frozen=True, slots=True)
class SliceRows:
    """Reads slices of one query. ``url``: of the table; ``schema``: the types to show its columns in."""

    url: str
    storage_options: Mapping[str, str] | None
    query: SliceQuery
    schema: pa.Schema

    def read(self, parts: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows of slices that come pickled. A TablesError comes as a TaskError (``carrying``); it is a SchemaError for a
        value that is too large for its type in ``schema``: the table was altered since Spark planned the query.
        """
        with carrying():
            folder = open_folder(self.url, self.storage_options, System.real().ids)
            for part in parts:
                for rows in self.query.batches(folder, pickle.loads(part)):  # noqa: S301 - comes as this object does
                    yield fitted(rows, self.schema)
