"""A row that is read alone is what a batch of it would be, or is left to the batch; a program can change nothing of it later."""

import copy
import dataclasses
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.row_formats import RowFormats
from headgate.rows import RowFormat
from support.any_values import NESTED, SCALARS
from support.every_kind import INFO, SCHEMA, row
from support.strategies import effort

FORMATS = RowFormats(dataclasses.replace(INFO, key=("id",), ordering="big"))
UPSERT, DELETE = FORMATS.upsert, FORMATS.delete
MIXED, NUMBERED = FORMATS.mixed("op", pa.string()), FORMATS.mixed("op", pa.int8())
FULL = {**row(1, "big", 2), "text": "ü", "raw": b"r", "amount": Decimal("1.50"), "us": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}


def read(row_format: RowFormat, data: object) -> pa.RecordBatch | None:
    """The row as it is sent, if it is read alone."""
    found = row_format.reader.read(data)
    return found and row_format.reader.batch([found[0]], row_format.schema)


def converted(row_format: RowFormat, data: object) -> pa.RecordBatch:
    (batch,) = row_format.convert(data)
    return batch


_edges: dict[str, list[Any]] = {
    "small": [2**31 - 1, -(2**31), 2**31],
    "big": [2**63 - 1, -(2**63), 2**63],
    "wide": [2**53, -(2**53), 2**53 - 1, 2**53 + 1, 10**400, float("nan"), float("-inf")],
    "narrow": [3.4028235e38, 3.5e38, 1e-37, 1e-45, 1e-46, -0.0, float("nan"), float("inf")],
    "amount": [
        Decimal(text)
        for text in (
            "99999999.99",
            "100000000",
            "-99999999.99",
            "1.5",
            "1.005",
            "1E3",
            "1E-3",
            "NaN",
            "-0",
            "0E+39",
            f"1.{'0' * 40}",
        )
    ],
    "text": ["\ud800", "ü" * 3, "", "\0"],
    "fixed": [b"x" * 15, b"x" * 16],
    "us": [
        dt.datetime.max.replace(tzinfo=dt.UTC),
        dt.datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
        dt.datetime.fromisoformat("2026-01-01"),
        dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
    ],
    "ms": [dt.datetime(2026, 1, 1, 0, 0, 0, 1_500, dt.UTC), dt.datetime(2026, 1, 1, 0, 0, 0, 2_000, dt.UTC)],
    "day": [dt.date.max, dt.date.min, dt.datetime.fromisoformat("2026-01-01")],
}


def _check(row_format: RowFormat, given_row: dict[str, Any]) -> bool:
    """Whether the row was read alone, as a batch would have it; what a batch refuses never is."""
    alone = read(row_format, given_row)
    try:
        batch = converted(row_format, given_row)
    except HeadgateError:
        assert alone is None
        return False
    if alone is not None:
        assert alone.schema.equals(batch.schema)
        assert all(
            mine.equals(theirs) or str(mine) == str(theirs) for mine, theirs in zip(alone.columns, batch.columns, strict=True)
        )
    return alone is not None


@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column, values in _edges.items() for value in values], ids=repr
)
def test_values_at_the_edge_are_read_as_in_a_batch_or_left_to_it(column: str, value: Any) -> None:
    _check(UPSERT, {**row(0, column, value), "big": value if column == "big" else 1})


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(SCHEMA.names[1:]), SCALARS | NESTED), min_size=20, max_size=60))
@effort(60)
def test_any_value_is_read_as_in_a_batch_or_left_to_it(drawn: list[tuple[str, Any]]) -> None:
    rows = [{**row(number, "big", 1), column: value} for number, (column, value) in enumerate(drawn)]
    taken = [each for each in rows if _check(UPSERT, each)]
    if taken:  # together they are what they are alone
        together = UPSERT.reader.batch([UPSERT.reader.read(each)[0] for each in taken], SCHEMA)  # type: ignore[index]
        alone = pa.Table.from_batches([converted(UPSERT, each) for each in taken]).combine_chunks().to_batches()[0]
        assert all(mine.equals(theirs) or str(mine) == str(theirs) for mine, theirs in zip(together, alone, strict=True))


# --- forms ---

Data = dataclasses.make_dataclass("Data", SCHEMA.names)
Slotted = dataclasses.make_dataclass("Slotted", SCHEMA.names, slots=True, frozen=True)
Attrs = attrs.make_class("Attrs", SCHEMA.names)
Model = pydantic.create_model("Model", **dict.fromkeys(SCHEMA.names, (Any, ...)))  # type: ignore[call-overload]
Named = NamedTuple("Named", [(name, Any) for name in SCHEMA.names])  # type: ignore[misc]
Turned = NamedTuple("Turned", [(name, Any) for name in reversed(SCHEMA.names)])  # type: ignore[misc]
_forms: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": dict,
    "dict in another order": lambda values: dict(reversed(values.items())),
    "tuple": lambda values: tuple(values[name] for name in SCHEMA.names),
    **{kind.__name__: (lambda values, kind=kind: kind(**values)) for kind in (Data, Slotted, Attrs, Model, Named, Turned)},
}


@pytest.mark.parametrize("form", _forms)
def test_every_form_of_a_row_is_read_alone_and_in_a_list_of_one(form: str) -> None:
    for row_format in (UPSERT, DELETE):
        wanted = converted(row_format, FULL)
        for data in (_forms[form](FULL), [_forms[form](FULL)]):
            alone = read(row_format, data)
            assert alone is not None
            assert alone.equals(wanted)
            assert converted(row_format, data).equals(wanted)
    assert converted(UPSERT, [_forms[form](FULL)] * 3).num_rows == 3


@pytest.mark.parametrize(
    "data",
    [
        [],
        [FULL, FULL],
        (FULL, FULL),
        ((1, 2), (3, 4)),
        {**FULL, "extra": 1},
        {name: value for name, value in FULL.items() if name != "id"},
        {**FULL, "id": None},
        {**FULL, "big": None},
        tuple(FULL.values())[:-1],
        pa.RecordBatch.from_pylist([FULL], SCHEMA),
        pa.table({"id": [1]}),
        "text",
        7,
        None,
        dict,
        (each for each in [FULL]),
    ],
    ids=lambda data: f"{data!r:.30}",
)
def test_what_is_no_single_row_that_fits_is_left_to_the_batch(data: object) -> None:
    assert UPSERT.reader.read(data) is None


def test_a_row_may_lack_columns_that_can_be_null() -> None:
    alone = read(UPSERT, {"id": 1, "big": 2})
    assert alone is not None
    assert alone.equals(converted(UPSERT, {"id": 1, "big": 2}))


@dataclasses.dataclass
class Few:
    id: int
    big: int
    note: str = "not of the table"


def test_deletes_ignore_what_they_do_not_need_and_upserts_refuse_it() -> None:
    assert read(DELETE, Few(1, 2)) == pa.RecordBatch.from_pydict({"id": [1], "big": [2]}, DELETE.schema)
    assert read(UPSERT, Few(1, 2)) is None


@pytest.mark.parametrize(
    ("row_format", "known", "wrong"), [(MIXED, "delete", "upsret"), (NUMBERED, 2, 3), (MIXED, "upsert", None)]
)
def test_mixed_rows_name_a_known_operation(row_format: RowFormat, known: object, wrong: object) -> None:
    alone = read(row_format, {"op": known, "id": 1, "big": 2})
    assert alone is not None
    assert alone.column("op").to_pylist() == [known]
    assert row_format.reader.read({"op": wrong, "id": 1, "big": 2}) is None
    assert row_format.reader.read({"id": 1, "big": 2}) is None
    assert row_format.reader.read((1,) * len(SCHEMA)) is None


def test_nothing_that_the_program_changes_later_changes_a_row() -> None:
    given_row: dict[str, Any] = {
        **FULL,
        "raw": bytearray(b"raw"),
        "tags": ["a"],
        "spot": {"x": 1.0, "y": 1},
        "spots": [{"x": 1.0, "y": 1}],
        "props": {"p": 1},
    }
    for form in ("dict", "tuple", "Data", "Named"):
        changed = copy.deepcopy(given_row)
        data = _forms[form](changed)
        found = UPSERT.reader.read(data)
        assert found is not None
        changed["raw"][0] = 0
        changed["tags"].append("b")
        changed["spot"]["x"] = 9.0
        changed["spots"][0]["y"] = 9
        changed["props"]["q"] = 9
        if form == "dict":
            data["id"] = 9
        assert UPSERT.reader.batch([found[0]], SCHEMA).equals(converted(UPSERT, given_row))


def test_rows_near_a_limit_are_left_to_the_batch_which_knows_it() -> None:
    assert read(UPSERT, {**FULL, "text": "x" * 100_000}) is not None
    assert read(UPSERT, {**FULL, "text": "ü" * 200_000}) is None
    assert read(UPSERT, {**FULL, "raw": b"x" * 300_000}) is None
    assert read(UPSERT, {**FULL, "tags": ["x" * 100_000] * 3}) is None


def test_the_size_of_a_row_is_about_that_in_arrow() -> None:
    for text in ("", "x" * 5_000, "ü" * 5_000):
        found = UPSERT.reader.read({**FULL, "text": text, "tags": ["y" * 500]})
        assert found is not None
        batch = UPSERT.reader.batch([found[0]] * 100, SCHEMA)
        assert 0.8 * batch.nbytes < 100 * found[1] < 1.3 * batch.nbytes + 20_000
