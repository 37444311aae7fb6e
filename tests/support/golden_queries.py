"""Queries of the past that real Hudi on Spark answered on golden tables: read optimised, time travel, incremental."""

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.golden import GOLDEN

_FILE = re.compile(r"(?P<table>.*)\.(?:(?P<ro>ro)|tt-(?P<as_of>\d+)|inc-(?P<begin>\d+)-(?P<end>\d+))\.parquet")


@dataclass(frozen=True)
class Query:
    """``arguments``: of ``Table.scan``; an incremental query's bounds are completion times."""

    table: str
    arguments: dict[str, str]
    path: Path

    @property
    def kind(self) -> str:
        return "read optimised" if "mode" in self.arguments else "incremental" if "since" in self.arguments else "time travel"

    def rows(self) -> pa.Table:
        """What Spark returned, meta columns included."""
        return pq.read_table(self.path)

    def __str__(self) -> str:
        return self.path.name.removesuffix(".parquet")


def queries() -> list[Query]:
    """All that lie beside the tables, sorted."""
    found = []
    for path in sorted((GOLDEN / "spark").glob("*.parquet")):
        parts = _FILE.fullmatch(path.name)
        if parts is not None:
            arguments = {"mode": "read_optimized"} if parts["ro"] else {"as_of": parts["as_of"] or parts["end"]}
            found.append(Query(parts["table"], arguments | ({"since": parts["begin"]} if parts["begin"] else {}), path))
    return found
