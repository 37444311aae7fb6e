"""What changes about a table's columns, as callers say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Alteration:
    """Columns are named by paths: ``address.zip`` is a field of the struct ``address``, ``tags.element`` the item of a list, and
    ``prices.value`` the value of a map.

    ``add``: new columns, which are null in the rows that are there. ``widen``: columns and the types that they get.
    ``nullable``: columns that may be null from now on.
    """

    add: Mapping[str, pa.DataType] = field(default_factory=dict)
    widen: Mapping[str, pa.DataType] = field(default_factory=dict)
    nullable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AlterResult:
    """What has changed, as texts for people such as ``gate: string``. ``instant``: "" when nothing had to, or was only planned.

    ``schema``: of the table from now on.
    """

    instant: str
    added: Sequence[str]
    widened: Sequence[str]
    nullable: Sequence[str]
    schema: pa.Schema

    @property
    def changes(self) -> bool:
        """Whether the schema is another than before."""
        return bool(self.added or self.widened or self.nullable)
