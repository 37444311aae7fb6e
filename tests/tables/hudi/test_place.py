"""A batch of upserts and deletes on its way to the buckets: what is refused, and where each row goes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.errors import FixCall, NullKeyError, NullOrderingError, OptionError, PartitionValueError, SchemaError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.place import Placed, place
from headgate_tables.system import SystemIds
from support.events import EVENTS_SCHEMA, events
from support.key_texts import record_buckets
from support.splitting import split
from support.strategies import effort

STRICT = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("part", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("note", pa.string(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("spot", pa.struct([pa.field("x", pa.int32(), nullable=False)])),
    ]
)
Row = dict[str, Any]


def defined(schema: pa.Schema = STRICT, **changes: Any) -> Definition:
    settings: dict[str, Any] = {
        "name": "t",
        "schema": schema,
        "record_key": ("id",),
        "partition_by": ("part",),
        "ordering": "ts",
        "buckets": 4,
        "hive_style": False,
        "url_encode": True,
        "table_uuid": SystemIds().table_uuid(),
    }
    return Definition(**{**settings, **changes})


def row(key: str, ts: int | None = 1, part: str | None = "p", note: str | None = "n", **others: Any) -> Row:
    return {"id": key, "part": part, "ts": ts, "note": note, "tags": ["t", None], "spot": {"x": 1}, **others}


def loose(*rows: Row) -> pa.Table:
    """As a client may send it: nothing says which columns hold no null."""
    return pa.Table.from_pylist(list(rows), pa.schema([field.with_nullable(True) for field in STRICT]))


def flags(*values: int) -> pa.BooleanArray:
    return pa.array([bool(value) for value in values], pa.bool_())


def where(placed: Placed) -> list[tuple[str, int]]:
    return [placed.groups[number] for number in placed.group.tolist()]


def test_rows_keep_their_order_and_each_knows_its_partition_and_bucket() -> None:
    definition = defined(EVENTS_SCHEMA, record_key=("event_id",), partition_by=("dt",), ordering="version", buckets=3)
    data = events(1_000)
    placed = place(data, None, definition)
    assert placed.rows.equals(data.combine_chunks())
    assert placed.keys.to_pylist() == data["event_id"].to_pylist()
    assert placed.group.dtype == np.int32
    assert len(placed.group) == placed.rows.num_rows == len(placed.deletes) == 1_000
    assert not placed.deletes.true_count
    spec = KeySpec(("event_id",))
    buckets = record_buckets(read_keys(data, spec), spec, 3)
    assert where(placed) == list(zip(data["dt"].to_pylist(), buckets, strict=True))
    assert sorted(set(where(placed))) == sorted(placed.groups), "each group once, and only those that occur"


def test_nothing_is_dropped_and_keys_may_come_again() -> None:
    placed = place(loose(row("a", 5), row("a", 3), row("a", 5)), flags(0, 1, 0), defined())
    assert placed.rows["ts"].to_pylist() == [5, 3, 5]
    assert placed.deletes.to_pylist() == [False, True, False]
    assert placed.keys.to_pylist() == ["a"] * 3
    assert len(placed.groups) == 1


def test_of_a_delete_only_key_partition_and_ordering_are_left() -> None:
    gone = row("b", 7, "q", note=None, tags=None, spot={"x": None})
    placed = place(loose(row("a"), gone, row("c"), row("d")), flags(0, 1, 0, 1), defined())
    empty = {"note": None, "tags": None, "spot": None}
    assert placed.rows.to_pylist() == [row("a"), gone | empty, row("c"), row("d") | empty]
    assert placed.rows.schema == STRICT
    assert all(column.num_chunks == 1 for column in placed.rows.columns)


def test_deletes_alone_need_no_other_columns_and_ignore_what_they_do_not_need() -> None:
    few = loose(row("a", 1), row("b", 2)).select(["part", "ts", "id"]).append_column("surplus", pa.array([1, 2]))
    placed = place(few, flags(1, 1), defined())
    assert placed.rows.schema == STRICT
    assert placed.rows.to_pylist() == [row(key, ts, note=None, tags=None, spot=None) for key, ts in (("a", 1), ("b", 2))]
    assert placed.deletes.to_pylist() == [True, True]


def test_upserts_and_deletes_together_need_all_columns() -> None:
    with pytest.raises(SchemaError, match="missing: note"):
        place(loose(row("a"), row("b")).drop_columns(["note"]), flags(0, 1), defined())
    with pytest.raises(SchemaError, match="unknown: surplus"):
        place(loose(row("a"), row("b")).append_column("surplus", pa.array([1, 2])), flags(0, 1), defined())


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (row("a", note=None), SchemaError, "'note' holds null"),
        (row("a", spot={"x": None}), SchemaError, r"'spot\.x' holds null"),
        (row("", 1), NullKeyError, "null or empty"),
        (row("a", None), NullOrderingError, "orders the rows and is null"),
        (row("a", part=None), PartitionValueError, "is null"),
        (row("a", part=".."), PartitionValueError, "cannot be a folder"),
    ],
)
def test_an_upsert_that_is_wrong_refuses_the_batch_also_beside_deletes(bad: Row, error: type[FixCall], words: str) -> None:
    for deletes in (None, flags(0, 0), flags(1, 0)):
        with pytest.raises(error, match=words):
            place(loose(row("ok"), bad), deletes, defined())


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"id": None}, SchemaError, "'id' holds null"),
        ({"id": ""}, NullKeyError, "null or empty"),
        ({"ts": None}, NullOrderingError, "orders the rows and is null"),
        ({"part": None}, PartitionValueError, "is null"),
    ],
)
def test_a_delete_without_key_partition_or_ordering_refuses_the_batch(bad: Row, error: type[FixCall], words: str) -> None:
    for others, deletes in (([], flags(1)), ([row("ok")], flags(0, 1))):
        with pytest.raises(error, match=words):
            place(loose(*others, row("a") | bad), deletes, defined())


@pytest.mark.parametrize("kind", [pa.int32(), pa.date32()], ids=str)
def test_de1_a_delete_of_ordering_value_zero_is_refused_where_hudi_takes_it_for_none(kind: pa.DataType) -> None:
    """Fact HF5."""
    schema = pa.schema([("id", pa.string()), ("ts", kind)])
    definition = defined(schema, partition_by=())
    data = pa.table({"id": ["a", "b", "c"], "ts": pa.array([0, 1, 0], pa.int32()).cast(kind)}, schema=schema)
    assert place(data.slice(0, 2), flags(0, 1), definition).deletes.true_count == 1
    with pytest.raises(FixCall, match="delete in row 2 has the value 0"):
        place(data, flags(0, 1, 1), definition)
    with pytest.raises(FixCall, match="delete in row 0 has the value 0"):
        place(data.slice(2), flags(1), definition)


@pytest.mark.parametrize("deletes", [pa.array([True, None]), pa.array([True]), pa.array([1, 0])], ids=["null", "short", "int"])
def test_deletes_that_do_not_fit_the_rows_are_refused(deletes: Any) -> None:
    with pytest.raises(OptionError, match="no value for some of 2 rows"):
        place(loose(row("a"), row("b")), deletes, defined())


def test_a_batch_without_rows_has_no_groups() -> None:
    for deletes in (None, flags()):
        placed = place(STRICT.empty_table(), deletes, defined())
        assert (placed.rows.num_rows, placed.groups, len(placed.group)) == (0, [], 0)
        assert split(placed) == []


def test_columns_in_chunks_of_their_own_and_in_another_order_are_taken() -> None:
    data = pa.concat_tables([loose(row("a")), loose(row("b"), row("c"))]).select(list(reversed(STRICT.names)))
    placed = place(data, None, defined())
    assert placed.rows.schema == STRICT
    assert all(column.num_chunks == 1 for column in placed.rows.columns)
    assert placed.rows["id"].to_pylist() == ["a", "b", "c"]


def test_a_key_of_several_columns_is_written_with_their_names() -> None:
    definition = defined(record_key=("id", "part"))
    assert place(loose(row("a"), row("b")), flags(0, 1), definition).keys.to_pylist() == ["id:a,part:p", "id:b,part:p"]


@effort(60)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("pq"), st.integers(0, 9), st.booleans()), max_size=30))
def test_splitting_gives_each_group_its_rows_in_the_order_of_arrival(entries: list[tuple[str, str, int, bool]]) -> None:
    data = loose(*(row(key, ts, part) for key, part, ts, _ in entries))
    placed = place(data, flags(*(deleted for *_, deleted in entries)), defined())
    found = split(placed)
    assert [(changes.partition, changes.bucket) for changes in found] == placed.groups
    for changes in found:
        mine = [at for at, group in enumerate(where(placed)) if group == (changes.partition, changes.bucket)]
        assert changes.rows.to_pylist() == placed.rows.take(mine).to_pylist()
        assert changes.keys.to_pylist() == placed.keys.take(mine).to_pylist()
        assert changes.deletes.to_pylist() == placed.deletes.take(mine).to_pylist()
    assert sum(changes.rows.num_rows for changes in found) == len(entries)
