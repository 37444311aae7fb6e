"""Rows in Avro, encoded by columns: byte for byte what fastavro writes row by row."""

import io
import json
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.hudi.log import avro_pieces
from headgate_tables.hudi.log.avro_encode import encode_rows
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema
from support.events import events
from support.kinds import Kind, kinds, maybe
from support.strategies import effort
from support.type_cases import CASES


def by_fastavro(rows: pa.Table) -> list[bytes]:
    """Each row behind its length."""
    parsed = fastavro.parse_schema(json.loads(avro_schema(rows.schema, "t", meta_columns=False)))
    found = []
    for row in rows.to_pylist(maps_as_pydicts="strict"):
        record = io.BytesIO()
        fastavro.schemaless_writer(record, parsed, row)
        found.append(struct.pack(">i", record.tell()) + record.getvalue())
    return found


def by_columns(rows: pa.Table) -> list[bytes]:
    columns: list[Any] = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.columns]
    encoded = encode_rows(columns, rows.schema)
    n = rows.num_rows
    pieces = [encoded.slice(at, at + 1).to_pybytes() for at in range(n)]
    assert encoded.slice(0, n).to_pybytes() == b"".join(pieces)
    return pieces


@st.composite
def tables(draw: Any) -> pa.Table:
    columns = draw(st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4))
    n = draw(st.integers(1, 6))
    made: dict[str, pa.Array] = {}
    fields = []
    for number, (kind, nullable) in enumerate(columns):
        made[f"c{number}"] = _array(draw, kind, n, nullable=nullable)
        fields.append(pa.field(f"c{number}", kind.stored, nullable=nullable))
    rows = pa.table(list(made.values()), schema=pa.schema(fields))
    first = draw(st.integers(0, n - 1))
    return rows.slice(first, draw(st.integers(1, n - first)))


def _array(draw: Any, kind: Kind, n: int, *, nullable: bool) -> Any:
    values = [draw(maybe(kind.values, nullable)) for _ in range(n)]
    return pa.array([kind.stored_value(value) for value in values], kind.stored)


@pytest.mark.slow
@effort(150)
@given(rows=tables())
def test_rows_of_any_columns_and_any_stretch_of_them_are_what_fastavro_writes(rows: pa.Table) -> None:
    assert by_columns(rows) == by_fastavro(rows)


@pytest.mark.parametrize("name", CASES)
def test_values_at_the_edges_of_each_type_and_any_stretch_of_them_are_what_fastavro_writes(name: str) -> None:
    case = CASES[name]
    rows = pa.table({name: pa.array(case.values if case.kept is None else case.kept, case.stored)})
    expected = by_fastavro(rows)
    for first in range(5):
        for stop in range(first + 1, 6):
            assert by_columns(rows.slice(first, stop - first)) == expected[first:stop], (first, stop)


@pytest.mark.parametrize("power", range(0, 64, 7))
def test_numbers_around_each_length_take_as_many_bytes_as_they_need(power: int) -> None:
    near = [sign * (1 << power) // 2 + step for sign in (1, -1) for step in (-1, 0, 1)]
    rows = pa.table({"n": pa.array([min(max(n, -(2**63)), 2**63 - 1) for n in near], pa.int64())})
    assert by_columns(rows) == by_fastavro(rows)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 8191, 8192])
def test_texts_around_each_length_of_their_length(length: int) -> None:
    rows = pa.table({"a": ["x" * length, None, "y"], "b": [b"z" * length, b"", None]})
    assert by_columns(rows) == by_fastavro(rows)


def test_what_arrow_keeps_below_a_null_is_not_written() -> None:
    """Arrow may keep any value there, and any items of a list."""
    wide = pa.array([1, 2**62, 3]).to_numpy()
    bitmap = pa.py_buffer(bytes([0b101]))
    numbers = pa.Array.from_buffers(pa.int64(), 3, [bitmap, pa.py_buffer(wide.data)])
    texts = pa.Array.from_buffers(pa.string(), 3, [bitmap, *pa.array(["a", "hidden", "c"]).buffers()[1:]])
    items = pa.array([[1], [2, 3], [4]])
    lists = pa.Array.from_buffers(items.type, 3, [bitmap, items.buffers()[1]], children=[items.values])
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2**62, 3]), pa.array(["a", "hidden", "c"])],
        fields=[pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.string())],
        mask=pa.array([False, True, False]),
    )
    rows = pa.table({"n": numbers, "s": texts, "l": lists, "r": structs})
    assert by_columns(rows) == by_fastavro(rows)
    assert b"hidden" not in b"".join(by_columns(rows))


def test_a_column_of_few_texts_may_be_a_dictionary() -> None:
    texts = pa.array(["a", "é" * 100, "a", ""])
    rows = pa.table({"a": texts, "b": texts.dictionary_encode(), "c": [1, 2, 3, 4]})
    plain = rows.set_column(1, "b", texts)
    columns: list[Any] = [column.chunk(0) for column in rows.columns]
    assert encode_rows(columns, plain.schema).content.to_pybytes() == b"".join(by_fastavro(plain))


def test_rows_of_more_bytes_than_32_bits_count_are_encoded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = events(300)
    expected = by_columns(rows)
    monkeypatch.setattr(avro_pieces, "MOST_SHORT", 1000)
    assert by_columns(rows) == expected == by_fastavro(rows)
