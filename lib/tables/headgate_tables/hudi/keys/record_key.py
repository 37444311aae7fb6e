"""The record key of each row, as Hudi's key generators write it into ``_hoodie_record_key``.

One field: the text of its value (SimpleKeyGenerator, NonpartitionedKeyGenerator). Several: ``f1:v1,f2:v2`` with ``__null__``
and ``__empty__`` for missing values (ComplexKeyGenerator, NonpartitionedKeyGenerator). Hudi: KeyGenUtils.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.errors import FixCall, NullKeyError, OptionError
from headgate_tables.hudi.keys import columns

NULL = "__null__"
EMPTY = "__empty__"
_USE = "record key"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """The record key fields of a table, in the order of ``hoodie.table.recordkey.fields``.

    ``prefixed``: whether a *single* field is written as ``field:value``, which ComplexKeyGenerator does in some releases
    (HUDI-7001: up to 0.14.0, and by default from 1.1 on). Several fields always carry their names.
    Raises OptionError for names that a key's text cannot carry.
    """

    fields: tuple[str, ...]
    prefixed: bool = False

    def __post_init__(self) -> None:
        if not self.fields or len(set(self.fields)) != len(self.fields):
            raise OptionError(f"record key fields {self.fields!r} are empty or repeat", fix="Name each key column once.")
        for field in self.fields:
            if not field or set(field) & set(",:"):
                raise OptionError(f"{field!r} cannot be a record key field", fix="Rename the column without ',' and ':'.")

    @property
    def named(self) -> bool:
        """Whether field names are part of the key's text."""
        return self.prefixed or len(self.fields) > 1


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """``keys``: the record keys, no nulls. ``values``: per field the text of its values, null where the row has null."""

    keys: pa.StringArray
    values: tuple[pa.StringArray, ...]


def read_keys(table: pa.Table | pa.RecordBatch, spec: KeySpec) -> RecordKeys:
    """The record keys and the values in them; columns may be dictionary-encoded or chunked.

    Raises NullKeyError for a null or empty key: one field, or all of several. SchemaError and UnsupportedTypeError as in
    `columns`. FixCall if a key's text could be read as another key's, because Hudi would take two records for one.
    """
    values = tuple(columns.text(columns.column(table, field, _USE), field, _USE) for field in spec.fields)
    missing = [_missing(each) for each in values]
    _refuse_without_key(spec, missing)
    if not spec.named:
        return RecordKeys(values[0], values)
    _refuse_ambiguous(spec, values)
    pieces: list[str | pa.StringArray] = []
    for position, (field, each) in enumerate(zip(spec.fields, values, strict=True)):
        pieces += [f",{field}:" if position else f"{field}:", _with_placeholders(each, missing[position])]
    return RecordKeys(pc.binary_join_element_wise(*pieces, ""), values)


def _missing(values: pa.StringArray) -> pa.BooleanArray | None:
    """True where null or empty; None if no value is."""
    missing: pa.BooleanArray = pc.equal(pc.binary_length(values), pa.scalar(0, pa.int32())).fill_null(True)
    return missing if missing.true_count else None


def _refuse_without_key(spec: KeySpec, missing: list[pa.BooleanArray | None]) -> None:
    without: pa.BooleanArray | None = missing[0]
    for each in missing[1:]:
        without = None if without is None or each is None else pc.and_(without, each)
    if without is None or not without.true_count:
        return
    what = f"column {spec.fields[0]!r} is" if len(spec.fields) == 1 else f"columns {', '.join(map(repr, spec.fields))} are all"
    raise NullKeyError(
        f"the record key {what} null or empty in {without.true_count} of {len(without)} rows, first in row {_first(without)}",
        fix="Give these rows a key, or leave them out.",
    )


def _refuse_ambiguous(spec: KeySpec, values: tuple[pa.StringArray, ...]) -> None:
    """Without the values refused here, different keys never give one text: the first ``,f2:`` after ``f1:`` ends the first value.

    Otherwise test_two_different_keys_never_have_one_text finds the pair.
    """
    for position, (field, each) in enumerate(zip(spec.fields, values, strict=True)):
        suspects = [pc.equal(each, pa.scalar(NULL)), pc.equal(each, pa.scalar(EMPTY))]
        if position + 1 < len(spec.fields):
            suspects.append(pc.match_substring(each, f",{spec.fields[position + 1]}:"))
        for suspect in suspects:
            if suspect.true_count:
                row = _first(suspect)
                raise FixCall(
                    f"the record key column {field!r} holds {each[row].as_py()[:60]!r} in row {row}, which Hudi's key text "
                    "cannot tell from other keys",
                    fix="Change the value, or use a single column that joins the key's parts in another way.",
                )


def _with_placeholders(values: pa.StringArray, missing: pa.BooleanArray | None) -> pa.StringArray:
    if missing is None:
        return values
    filled: pa.StringArray = pc.if_else(missing, pc.if_else(pc.is_null(values), NULL, EMPTY), values)
    return filled


def _first(mask: pa.BooleanArray) -> int:
    return int(pc.index(mask, True).as_py())
