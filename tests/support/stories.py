"""Random calls on a table of one slice, of as many rows as its thresholds ask for, and what DuckDB says of them.

A story comes from a seed, whole, because Hypothesis draws few rows and a threshold has thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import pc

_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "version": pa.int64(),
    "state": pa.string(),
    "note": pa.string(),
    "raw": pa.binary(),
    "amount": pa.float64(),
}
SCHEMA = pa.schema(_COLUMNS)
KEY, ORDERING = "id", "version"
_TEXTS = ("state", "note", "raw")
Values = Literal["one", "few", "own", "null"]
"""How the values of a text repeat in a call: all the same, five of them, each row its own, none."""


@dataclass(frozen=True)
class Call:
    """An upsert or a delete of ``rows`` keys, the numbers ``first``, ``first + step`` … ``seed`` shuffles what is ordered."""

    kind: Literal["upsert", "delete"]
    rows: int
    first: int
    step: int
    texts: tuple[Values, ...]
    seed: int

    def batch(self, ordering: str | None) -> pa.Table:
        """As it is handed in: whole rows, or the keys (and ordering values) to delete."""
        numbers = self.first + self.step * np.arange(self.rows)
        choice = np.random.default_rng(self.seed)
        choice.shuffle(numbers)
        named = zip(_TEXTS, self.texts, strict=True)
        texts = [_texts(values, numbers, self.seed).cast(_COLUMNS[name]) for name, values in named]
        amounts: Any = pa.array(choice.normal(size=self.rows), mask=numbers % 11 == 0)
        columns = [_lettered("k", numbers), pa.array(choice.integers(0, 4, self.rows)), *texts, amounts]
        batch = pa.table(columns, schema=SCHEMA)
        return batch if self.kind == "upsert" else batch.select([KEY, *([ordering] if ordering else [])])


def story(seed: int, sizes: Sequence[int]) -> list[list[Call]]:
    """Calls between compactions. The first one is an upsert; keys of some meet."""
    choice = np.random.default_rng(seed)

    def call(kind: Literal["upsert", "delete"]) -> Call:
        rows = int(choice.choice(sizes))
        first = int(choice.choice([0, 0, rows // 2, rows]))
        texts = tuple(choice.choice(["one", "few", "own", "null"], len(_TEXTS), p=[0.3, 0.3, 0.3, 0.1]).tolist())
        return Call(kind, rows, first, int(choice.choice([1, 1, 2, 3])), texts, int(choice.integers(1 << 32)))

    checkpoints = [
        [call("upsert" if choice.random() < 0.75 else "delete") for _ in range(choice.integers(1, 5))] for _ in range(2)
    ]
    return [[call("upsert"), *checkpoints[0]], checkpoints[1]]


def _texts(values: Values, numbers: npt.NDArray[np.int64], seed: int) -> Any:
    match values:
        case "one":
            return _lettered("", np.full(len(numbers), seed))
        case "few":
            return _lettered("v", numbers % 5)
        case "own":
            return _lettered(f"{seed % 1000} ", numbers)
        case "null":
            return pa.nulls(len(numbers), pa.string())


def _lettered(letter: str, numbers: npt.NDArray[np.int64]) -> Any:
    return pc.binary_join_element_wise(letter, pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 7, "0"), "")


class Expected:
    """What the table shows after some calls. Close it. With ``ordering`` the larger value wins, a tie goes to the later call."""

    def __init__(self, ordering: str | None) -> None:
        self._db = duckdb.connect()
        self._db.register("nothing", SCHEMA.empty_table())
        self._db.execute("create table entries as select *, 0 as call, false as deleted from nothing")
        self._rank = f"{ordering} desc, call desc" if ordering else "call desc"
        self._calls = 0

    def close(self) -> None:
        self._db.close()

    def take(self, call: Call, batch: pa.Table) -> None:
        """One more call."""
        self._calls += 1
        self._db.register("batch", batch)
        deleted = call.kind == "delete"
        self._db.execute("insert into entries by name select *, ? as call, ? as deleted from batch", [self._calls, deleted])
        self._db.unregister("batch")

    def compacted(self) -> None:
        """Deletes are forgotten, as by Hudi, and hold nothing back any more."""
        self._db.execute(f"create or replace table entries as {self._winners()}")

    def rows(self) -> pa.Table:
        """By key."""
        found: pa.Table = self._db.sql(f"select {', '.join(SCHEMA.names)} from ({self._winners()}) order by id").to_arrow_table()
        return found

    def _winners(self) -> str:
        newest = f"row_number() over (partition by id order by {self._rank}) = 1"
        return f"select * from (select * from entries qualify {newest}) where not deleted"
