"""Avro rows of other writers: the fast way, the slow way, and what fastavro wrote are the same."""

import contextlib
import io
import json
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate_tables.errors import CorruptFileError, TablesError, UnsupportedTableError
from headgate_tables.hudi.log import avro_rows
from headgate_tables.hudi.log.avro_binary import as_original
from headgate_tables.hudi.log.avro_rows import decode, decode_together
from headgate_tables.hudi.log.block import Block, BlockKind, HeaderKey, read_blocks
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema
from support.events import events, with_meta
from support.golden_logs import golden_logs

Json = Any
Row = Mapping[str, Any]


def content_of(schema: Json, rows: Sequence[Row], *, version: int = 3) -> pa.Buffer:
    """A block's content, written by fastavro."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    out = io.BytesIO()
    out.write(struct.pack(">ii", version, len(rows)))
    for row in rows:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, parsed, dict(row))
        out.write(struct.pack(">i", len(record.getvalue())) + record.getvalue())
    return pa.py_buffer(out.getvalue())


def record(**columns: Json) -> Json:
    return {
        "type": "record",
        "name": "t_record",
        "namespace": "hoodie.t",
        "fields": [{"name": name, "type": kind} for name, kind in columns.items()],
    }


def quickly(content: pa.Buffer, schema: str, names: list[str]) -> pa.Table | None:
    """By the fast way alone; None when it cannot."""
    count, run = avro_rows.row_count(content, "f"), content.slice(8)
    return avro_rows._decode_columns(run, [count], [run.size], avro_rows._shape(schema), names)


def slowly(content: pa.Buffer, schema: str) -> pa.Table:
    """Every row by fastavro, whatever the fast way could do."""
    shape, kinds = json.loads(json.dumps(avro_rows._shape(schema))), arrow_schema(schema, "f")
    rows = avro_rows._decode_rows(content, avro_rows.row_count(content, "f"), shape, "f")
    types = {field["name"]: field["type"] for field in shape["fields"]}
    return pa.table(
        [as_original(rows[field.name].combine_chunks(), field.type, types[field.name]) for field in kinds], schema=kinds
    )


# --- random schemas ---

_NUMBERS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
}
_PLAIN: dict[str, st.SearchStrategy[Any]] = _NUMBERS | {
    "boolean": st.booleans(),
    "string": st.text(max_size=70),
    "bytes": st.binary(max_size=70),
}


class Kinds:
    """Draws Avro types with a strategy for their values; named types get fresh names, or one that was drawn before."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._names = 0
        self._named: list[tuple[str, st.SearchStrategy[Any]]] = []

    def any(self, depth: int) -> tuple[Json, st.SearchStrategy[Any]]:
        options = [
            "plain",
            "logical",
            "decimal",
            "fixed",
            "enum",
            *(["array", "map", "record"] if depth else []),
            *(["again"] if self._named else []),
        ]
        build = getattr(self, f"_{self._draw(st.sampled_from(options))}")
        kind, values = build(depth)
        shape = self._draw(st.sampled_from(["plain", "null first", "null last"]))
        if shape == "plain":
            return kind, values
        return (["null", kind] if shape == "null first" else [kind, "null"]), st.none() | values

    def _plain(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        name = self._draw(st.sampled_from(sorted(_PLAIN)))
        return name, _PLAIN[name]

    def _logical(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        # Values stay raw integers: fastavro writes those as they are, and times beyond year 9999 occur.
        logical = {
            "int": ["date", "time-millis"],
            "long": ["time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-micros"],
        }
        name = self._draw(st.sampled_from(sorted(logical)))
        meaning = self._draw(st.sampled_from(logical[name]))
        day = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
        return {"type": name, "logicalType": meaning}, st.integers(0, day[meaning] - 1) if meaning in day else _NUMBERS[name]

    def _decimal(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        precision = self._draw(st.integers(1, 38))
        scale = self._draw(st.integers(0, precision))
        values = st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: Decimal(f"{n}E-{scale}"))
        decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
        if self._draw(st.booleans()):
            return {"type": "bytes"} | decimal, values
        return self._keep({"type": "fixed", "size": 16} | decimal, values)

    def _fixed(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        size = self._draw(st.integers(1, 20))
        return self._keep({"type": "fixed", "size": size}, st.binary(min_size=size, max_size=size))

    def _enum(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        symbols = ["A", "B", "C"][: self._draw(st.integers(1, 3))]
        return self._keep({"type": "enum", "symbols": symbols}, st.sampled_from(symbols))

    def _array(self, depth: int) -> tuple[Json, st.SearchStrategy[Any]]:
        kind, values = self.any(depth - 1)
        return {"type": "array", "items": kind}, st.lists(values, max_size=3)

    def _map(self, depth: int) -> tuple[Json, st.SearchStrategy[Any]]:
        kind, values = self.any(depth - 1)
        return {"type": "map", "values": kind}, st.dictionaries(st.text(max_size=5), values, max_size=3)

    def _record(self, depth: int) -> tuple[Json, st.SearchStrategy[Any]]:
        fields = {f"f{n}": self.any(depth - 1) for n in range(self._draw(st.integers(1, 3)))}
        listed = [{"name": name, "type": kind} for name, (kind, _) in fields.items()]
        return self._keep(
            {"type": "record", "fields": listed}, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})
        )

    def _again(self, _: int) -> tuple[Json, st.SearchStrategy[Any]]:
        chosen: tuple[Json, st.SearchStrategy[Any]] = self._draw(st.sampled_from(self._named))
        return chosen

    def _keep(self, kind: dict[str, Any], values: st.SearchStrategy[Any]) -> tuple[Json, st.SearchStrategy[Any]]:
        self._names += 1
        name = f"N{self._names}"
        self._named.append((name, values))
        return kind | {"name": name}, values


@st.composite
def blocks(draw: Any) -> tuple[Json, list[Row]]:
    """A record schema and rows of it."""
    kinds = Kinds(draw)
    columns = {f"c{n}": kinds.any(2) for n in range(draw(st.integers(1, 4)))}
    rows = draw(st.lists(st.fixed_dictionaries({name: values for name, (_, values) in columns.items()}), max_size=5))
    return record(**{name: kind for name, (kind, _) in columns.items()}), rows


def as_arrow(value: Any, kind: pa.DataType) -> Any:
    """The value that ``pa.array`` wants for a raw Avro value: maps as pairs."""
    if value is None:
        return None
    if isinstance(kind, pa.StructType):
        return {field.name: as_arrow(value[field.name], field.type) for field in (kind.field(i) for i in range(kind.num_fields))}
    if isinstance(kind, pa.ListType):
        return [as_arrow(item, kind.value_type) for item in value]
    if isinstance(kind, pa.MapType):
        return [(key, as_arrow(item, kind.item_type)) for key, item in value.items()]
    return value


@pytest.mark.slow
@given(blocks())
@settings(max_examples=300, deadline=None)
def test_any_block_is_read_as_fastavro_wrote_it(block: tuple[Json, list[Row]]) -> None:
    schema, rows = block
    text = json.dumps(schema)
    kinds = arrow_schema(text, "f")
    content = content_of(schema, rows)
    expected = pa.table(
        [pa.array([as_arrow(row[field.name], field.type) for row in rows], field.type) for field in kinds], schema=kinds
    )
    decoded = decode(content, text, None, "f")
    decoded.validate(full=True)
    assert decoded.equals(expected)
    if rows:
        assert quickly(content, text, kinds.names) is not None, "the fast way must do it"
        assert slowly(content, text).equals(expected)


@pytest.mark.slow
@given(blocks(), st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_are_a_typed_error_or_rows_in_step(
    capfd: pytest.CaptureFixture[str], block: tuple[Json, list[Row]], data: st.DataObject
) -> None:
    schema, rows = block
    content = bytearray(content_of(schema, rows).to_pybytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    buffer = pa.py_buffer(bytes(content))
    with contextlib.suppress(TablesError):
        decoded = decode(buffer, json.dumps(schema), None, "f")
        assert decoded.num_rows == struct.unpack_from(">i", content, 4)[0]
    assert capfd.readouterr().err == ""


# --- real ones ---


@pytest.mark.parametrize(
    "table",
    [
        "spark/h120_v8_mor_types_avro",
        "spark/h120_v8_mor_bucket_part2_url",
        "spark/h120_v9_mor_partial_update",
        "flink/mor_bucket_upsert_delete_v9",
    ],
)
def test_both_ways_read_real_blocks_alike(table: str) -> None:
    found = [
        block for path, content in golden_logs(table) for block in read_blocks(content, path) if block.kind is BlockKind.AVRO_DATA
    ]
    assert found
    for block in found:
        schema = block.headers[HeaderKey.SCHEMA]
        decoded = decode(block.content, schema, None, "f")
        assert decoded.equals(slowly(block.content, schema))
        assert decoded.num_rows == avro_rows.row_count(block.content, "f")


def test_the_seventeen_column_row_is_read() -> None:
    rows = with_meta(events(2000), "20261121001053580", "fid-0")
    schema = avro_schema(rows.schema, "t", meta_columns=True)
    content = content_of(json.loads(schema), rows.to_pylist())
    assert decode(content, schema, None, "f").equals(rows.combine_chunks())


# --- parts and errors ---

SCHEMA = record(a="int", b=["null", "string"], c={"type": "map", "values": "long"})
ROWS = [{"a": 1, "b": "x", "c": {"k": 1}}, {"a": 2, "b": None, "c": {}}]


def test_only_the_wanted_columns_are_returned_in_stored_order() -> None:
    content = content_of(SCHEMA, ROWS)
    assert decode(content, json.dumps(SCHEMA), ["c", "a", "unknown"], "f").to_pylist() == [
        {"a": 1, "c": [("k", 1)]},
        {"a": 2, "c": []},
    ]


def test_no_columns_still_have_rows() -> None:
    rows = decode(content_of(SCHEMA, ROWS), json.dumps(SCHEMA), [], "f")
    assert (rows.num_rows, rows.num_columns) == (2, 0)


def test_a_block_without_rows_has_columns() -> None:
    rows = decode(content_of(SCHEMA, []), json.dumps(SCHEMA), None, "f")
    assert (rows.num_rows, rows.column_names) == (0, ["a", "b", "c"])


def test_content_version_2_is_read_like_3() -> None:
    assert decode(content_of(SCHEMA, ROWS, version=2), json.dumps(SCHEMA), ["a"], "f").to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("version", [0, 1, 4])
def test_other_content_versions_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedTableError, match=f"f: Avro block of content version {version}"):
        decode(content_of(SCHEMA, ROWS, version=version), json.dumps(SCHEMA), None, "f")


def test_a_block_cut_anywhere_is_an_error() -> None:
    content = content_of(SCHEMA, ROWS)
    for cut in range(content.size):
        with pytest.raises(CorruptFileError, match="f: an Avro block is damaged"):
            decode(content.slice(0, cut), json.dumps(SCHEMA), None, "f")


def test_a_wrong_row_length_is_an_error_even_when_the_sum_is_right() -> None:
    content = bytearray(content_of(SCHEMA, ROWS).to_pybytes())
    first, second = 8, 8 + 4 + struct.unpack_from(">i", content, 8)[0]
    content[first + 3] += 1
    content[second + 3] -= 1
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged"):
        decode(pa.py_buffer(bytes(content)), json.dumps(SCHEMA), None, "f")


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x04, 0x7F, 0x80, 0xFF])
def test_no_byte_of_a_block_makes_a_library_print(capfd: pytest.CaptureFixture[str], byte: int) -> None:
    content = content_of(SCHEMA, ROWS).to_pybytes()
    for at in range(4, len(content)):
        with contextlib.suppress(CorruptFileError):
            decode(pa.py_buffer(content[:at] + bytes([byte]) + content[at + 1 :]), json.dumps(SCHEMA), None, "f")
    assert capfd.readouterr().err == ""


def test_a_branch_that_a_union_does_not_have_is_an_error() -> None:
    content = bytearray(content_of(record(a=["null", "long"]), [{"a": 1}]).to_pybytes())
    assert content[12:] == b"\x02\x02"
    content[12] = 4
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged"):
        decode(pa.py_buffer(bytes(content)), json.dumps(record(a=["null", "long"])), None, "f")


def test_numbers_of_more_bytes_than_they_need_are_read_and_those_that_do_not_fit_are_an_error() -> None:
    """A fixed may be wider than any decimal; Hudi's own writers take as few bytes as the precision needs."""
    fixed = {"type": "fixed", "name": "f", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 2}
    schema = json.dumps(record(d=fixed))
    for number in (0, 1, -1, 10**38 - 1, 1 - 10**38):
        content = content_of(record(d=fixed | {"logicalType": "unknown"}), [{"d": number.to_bytes(20, signed=True)}])
        assert quickly(content, schema, ["d"]) is not None
        assert decode(content, schema, None, "f").to_pylist() == [{"d": Decimal(f"{number}E-2")}]
    for number in (10**38, -(10**38), 2**127, -(2**127) - 1, 2**159 - 1):
        content = content_of(record(d=fixed | {"logicalType": "unknown"}), [{"d": number.to_bytes(20, signed=True)}])
        with pytest.raises(CorruptFileError, match="f: an Avro block is damaged"):
            decode(content, schema, None, "f")


@pytest.mark.parametrize("length", [1, 2, 15, 16])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_decimal_of_any_length_has_its_sign(length: int, sign: int) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    rows = [{"d": Decimal(sign * (256**length // 3 % 10**38))}, {"d": Decimal(7)}, {"d": Decimal(-sign)}]
    assert quickly(content_of(record(d=kind), rows), json.dumps(record(d=kind)), ["d"]) is not None
    assert decode(content_of(record(d=kind), rows), json.dumps(record(d=kind)), None, "f").to_pylist() == rows


FIXED = {"type": "fixed", "name": "f", "size": 8}


@pytest.mark.parametrize("kind", ["double", "float", "boolean", FIXED, FIXED | {"logicalType": "decimal", "precision": 9}])
def test_a_last_row_that_is_shorter_than_its_value_is_an_error(kind: Json) -> None:
    schema = json.dumps(record(n="long", a=kind))
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged, row 0 does not fit the schema"):
        decode(pa.py_buffer(struct.pack(">iii", 3, 1, 1) + b"\x02"), schema, None, "f")


def test_a_row_that_is_longer_than_its_values_is_an_error() -> None:
    content = struct.pack(">ii", 3, 2) + struct.pack(">i", 2) + b"\x02\x00" + struct.pack(">i", 1) + b"\x04"
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged, row 0 is longer than its values"):
        decode(pa.py_buffer(content), json.dumps(record(a="int")), None, "f")


def test_a_boolean_of_another_byte_is_read_as_fastavro_reads_it() -> None:
    content, schema = pa.py_buffer(struct.pack(">iii", 3, 1, 1) + b"\x02"), json.dumps(record(a="boolean"))
    assert decode(content, schema, None, "f").equals(slowly(content, schema))
    assert decode(content, schema, None, "f").to_pylist() == [{"a": True}]


def test_text_that_is_no_unicode_is_an_error() -> None:
    content = content_of(record(a="bytes"), [{"a": b"fine"}, {"a": b"\xff\xfe"}])
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged, row 1 does not fit the schema"):
        decode(content, json.dumps(record(a="string")), None, "f")


MANY = record(
    n=["null", "long"],
    s=["string", "null"],
    r=[
        "null",
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "double"]}, {"name": "y", "type": "bytes"}]},
    ],
    l={"type": "array", "items": ["null", "string"]},
    ll={"type": "array", "items": {"type": "array", "items": "int"}},
    m={"type": "map", "values": {"type": "array", "items": "string"}},
)


@pytest.mark.parametrize("count", [8191, 8192, 8193, 20_000])
def test_rows_of_more_than_one_stretch_are_read_as_they_were_written(count: int) -> None:
    """Of 8,192 rows: nulls, lists and texts of each go on with the next one's."""
    rows = [
        {
            "n": None if at % 3 == 0 else at * (-1) ** at,
            "s": None if at % 5 == 0 else "é" * (at % 7),
            "r": None if at % 4 == 0 else {"x": None if at % 2 else at / 7, "y": bytes([at % 256])},
            "l": [None if each % 2 else str(at) for each in range(at % 4)],
            "ll": [[at, each][: at % 3] for each in range(at % 3)],
            "m": {f"k{each}": [str(at)] * each for each in range(at % 3)},
        }
        for at in range(count)
    ]
    content, schema = content_of(MANY, rows), json.dumps(MANY)
    assert quickly(content, schema, ["ll", "n"]) is not None
    decoded = decode(content, schema, None, "f")
    decoded.validate(full=True)
    assert decoded.to_pylist(maps_as_pydicts="strict") == rows
    assert decode(content, schema, ["n", "m"], "f").to_pylist(maps_as_pydicts="strict") == [
        {"n": row["n"], "m": row["m"]} for row in rows
    ]


def test_blocks_without_rows_are_read_together_one_by_one() -> None:
    empty = content_of(SCHEMA, [])
    assert decode_together([empty, empty], json.dumps(SCHEMA), None) is None


def test_an_int_of_more_than_32_bits_is_an_error() -> None:
    content = content_of(record(a="long"), [{"a": 2**32 + 5}])
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged, a value is out of range"):
        decode(content, json.dumps(record(a="int")), None, "f")


def test_arrays_of_very_different_lengths_are_read_at_the_price_of_single_rows() -> None:
    schema = record(a={"type": "array", "items": "long"})
    rows = [{"a": list(range(20_000))}, *({"a": [1]} for _ in range(10))]
    content = content_of(schema, rows)
    assert quickly(content, json.dumps(schema), ["a"]) is None
    assert decode(content, json.dumps(schema), None, "f").to_pylist() == rows


def test_a_schema_that_is_not_the_rows_own_is_an_error() -> None:
    other = record(a="int", b=["null", "long"], c={"type": "map", "values": "long"}, d="double")
    with pytest.raises(CorruptFileError, match="f: an Avro block is damaged"):
        decode(content_of(SCHEMA, ROWS), json.dumps(other), None, "f")


def blocks_of(table: str) -> list[Block]:
    return [block for path, content in golden_logs(table) for block in read_blocks(content, path)]


def test_partial_blocks_hold_the_changed_columns_only() -> None:
    partial = [block for block in blocks_of("spark/h120_v9_mor_partial_update") if HeaderKey.IS_PARTIAL in block.headers]
    assert partial
    for block in partial:
        rows = decode(block.content, block.headers[HeaderKey.SCHEMA], None, "f")
        assert rows.num_columns < 5 + 7
