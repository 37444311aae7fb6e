"""What has to change about a table's columns so that they hold those of a batch. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate_tables.arrow import Field
from headgate_tables.errors import SchemaError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi.schema.altered import holds_all, parts_of
from headgate_tables.hudi.schema.canonical import check_names, stored_type

ADD, ADD_AND_WIDEN = "add", "add-and-widen"
"""Values of the setting ``headgate.evolve``; any other refuses every change."""


def evolution(schema: pa.Schema, columns: pa.Schema, evolve: str) -> Alteration:
    """The alteration of ``schema`` after which it holds every value of ``columns``: any of a batch's columns, with its types.

    Columns that are not among ``columns`` stay, and so do those that hold more already. Raises SchemaError for a change that
    ``evolve`` does not allow, and for a type that neither holds the other; UnsupportedTypeError.
    """
    changes = list(_changes({field.name: field for field in schema}, list(columns), ""))
    added = {each.path: each.kind for each in changes if each.before is None}
    widened = {each.path: each.kind for each in changes if each.before is not None}
    if added and evolve not in (ADD, ADD_AND_WIDEN):
        path, kind = next(iter(added.items()))
        raise SchemaError(
            f"the table has no column {path!r}, and its setting headgate.evolve={evolve} lets no batch add one",
            fix=f'Add it: `headgate table alter TABLE --add "{path}={kind}"`. `headgate configure TABLE headgate.evolve=add` '
            "lets every batch add columns.",
        )
    if widened and evolve != ADD_AND_WIDEN:
        path, kind = next(iter(widened.items()))
        raise SchemaError(
            f"column {path!r} holds less than {kind}, and the table's setting headgate.evolve={evolve} lets no batch widen it",
            fix=f'Widen it: `headgate table alter TABLE --widen "{path}={kind}"`. `headgate configure TABLE '
            "headgate.evolve=add-and-widen` lets every batch widen columns.",
        )
    return Alteration(add=added, widen=widened)


@dataclass(frozen=True, slots=True)
class _Change:
    """``before``: the type of the column that is there."""

    path: str
    kind: pa.DataType
    before: pa.DataType | None


def _changes(there: Mapping[str, Field], brought: Sequence[Field], above: str) -> Iterator[_Change]:
    for field in brought:
        path = f"{above}.{field.name}" if above else field.name
        kind = stored_type(field.type, path)
        if field.name in there:
            yield from _change(there[field.name].type, kind, path)
        else:
            check_names([field.name], above)
            yield _Change(path, kind, None)


def _change(there: pa.DataType, kind: pa.DataType, path: str) -> Iterator[_Change]:
    if there == kind or holds_all(kind, there):
        return
    if holds_all(there, kind):
        yield _Change(path, kind, there)
    elif there.num_fields and there.id == kind.id:
        yield from _changes({part.name: part for part in parts_of(there)}, parts_of(kind), path)
    else:
        raise SchemaError(
            f"column {path!r} is {there} in the table and {kind} in the batch, and neither type holds every value of the other",
            fix="Cast the batch's column, or send it under another name.",
        )
