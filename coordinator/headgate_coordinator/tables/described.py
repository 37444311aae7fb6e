"""Tables as the services describe and order them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from headgate_tables.face.definition import Definition
from headgate_tables.face.log import GraceRecord


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table's definition from its CONFIG slot, the url where readers find the table, the version of its format, and its setting
    ``headgate.evolve``.
    """

    name: str
    url: str
    definition: Definition
    format_version: int
    evolve: str


class InGrace(NamedTuple):
    """A table that can be brought back. ``table``: its own id, as text."""

    name: str
    table: str
    grace: GraceRecord


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to be created; ``buckets`` and ``table_version`` 0 take the default. ``creator``: the principal; empty: nobody had
    to say who it is.
    """

    name: str
    schema: pa.Schema
    record_key: Sequence[str]
    partition_by: Sequence[str]
    ordering: str | None
    buckets: int
    hive_style: bool
    exist_ok: bool
    table_version: int
    creator: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """The tables of a listing: those that could be described, names of those that cannot be now, and those that are dropped and
    can be brought back (rule D9).
    """

    described: Sequence[DescribedTable]
    unreadable: Sequence[str]
    in_grace: Sequence[InGrace]
