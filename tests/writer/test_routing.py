"""Many batches become one routed batch, and a routed batch one for each member, without a row lost, doubled or out of order."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.limits import BATCH_PARTITIONS, ROW_BYTES
from headgate_runtime.errors import from_tables
from headgate_tables.errors import FixCall, NullKeyError, NullOrderingError, PartitionValueError, SchemaError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import key_group
from headgate_writer.attached import Member, Membership
from headgate_writer.routing import RoutedRows, TooLargeError, route, split_by_member
from support.arrow_batches import mixed, routed, upserts

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
TABLE = Definition("t", SCHEMA, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))


def row(key: str, part: str = "p", ts: int | None = 1, note: str | None = "n") -> dict[str, Any]:
    return {"id": key, "part": part, "ts": ts, "note": note}


def table(*rows: dict[str, Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema)


def places(rows: RoutedRows) -> list[tuple[str, int]]:
    return [rows.groups[at] for at in rows.group]


def test_batches_are_put_together_in_order_with_their_deletes() -> None:
    found = route([upserts(table(row("a"), row("b"))), mixed(table(row("c"), row("a")), [True, False])], TABLE)
    assert found.rows["id"].to_pylist() == ["a", "b", "c", "a"]
    assert found.deletes.to_pylist() == [False, False, True, False]
    assert found.keys.to_pylist() == ["a", "b", "c", "a"]
    assert places(found)[0] == places(found)[3]
    assert found.rows["note"].to_pylist() == ["n", "n", None, "n"], "a delete keeps what it needs and nothing else"


def test_what_is_routed_together_goes_where_it_would_go_alone() -> None:
    batches = [upserts(table(*(row(f"k{n}{m}", f"p{m % 3}") for m in range(10)))) for n in range(4)]
    alone = [place for batch in batches for place in places(route([batch], TABLE))]
    assert places(route(batches, TABLE)) == alone


def test_batches_of_other_types_that_store_as_the_tables_are_routed_together() -> None:
    wide = table(row("a"), row("b"))
    narrow = wide.set_column(2, "ts", wide["ts"].cast(pa.int32())).set_column(0, "id", wide["id"].cast(pa.large_string()))
    shuffled = wide.select(["note", "ts", "part", "id"])
    keys_only = wide.select(["id", "part", "ts"])
    found = route([upserts(wide), upserts(narrow), upserts(shuffled), mixed(keys_only, [True, True])], TABLE)
    assert found.rows.schema.equals(SCHEMA)
    assert found.rows["id"].to_pylist() == ["a", "b"] * 4
    assert found.deletes.to_pylist() == [False] * 6 + [True] * 2
    assert all(column.num_chunks == 1 for column in found.rows.columns)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (table(row("")), NullKeyError),
        (table(row("a", ts=None)), NullOrderingError),
        (table(row("a", part="..")), PartitionValueError),
        (table(row("a")).drop(["note"]), SchemaError),
        (table(row("a")).append_column("x", pa.array([1])), SchemaError),
        (table(row("a")).set_column(2, "ts", pa.array([1.5])), SchemaError),
    ],
)
def test_what_a_table_cannot_hold_is_refused_with_a_type_alone_or_among_others(bad: pa.Table, error: type[FixCall]) -> None:
    good = table(row("a"), row("b"))
    with pytest.raises(error):
        route([upserts(bad)], TABLE)
    with pytest.raises(error):
        route([upserts(good), upserts(bad), upserts(good)], TABLE)


def test_partitions_of_one_batch_are_limited_and_those_of_many_are_not() -> None:
    def batch(n: int, first: int = 0) -> pa.Table:
        return table(*(row("a", f"p{first + k}") for k in range(n)))

    assert len(route([upserts(batch(BATCH_PARTITIONS))], TABLE).groups) == BATCH_PARTITIONS
    two = [upserts(batch(BATCH_PARTITIONS)), upserts(batch(BATCH_PARTITIONS, first=BATCH_PARTITIONS))]
    assert len(route(two, TABLE).groups) == 2 * BATCH_PARTITIONS
    with pytest.raises(TooLargeError) as caught:
        route([upserts(batch(1)), upserts(batch(BATCH_PARTITIONS + 1))], TABLE)
    assert f"{BATCH_PARTITIONS:,}" in str(caught.value)
    assert from_tables(caught.value).action == errors_pb2.ACTION_FIX_CALL


def test_a_row_that_fits_no_message_between_writers_is_refused() -> None:
    fits = ROW_BYTES - 4 - 4 - 4 - 8 - 2
    assert route([upserts(table(row("a", note="x" * fits)))], TABLE).rows.num_rows == 1
    with pytest.raises(TooLargeError):
        route([upserts(table(row("a", note="x" * (fits + 1))))], TABLE)


def membership(owners: list[int], members: int) -> Membership:
    return Membership(1, tuple(Member(str(n), "") for n in range(members)), np.array(owners, np.uint16), "auto")


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.booleans()), min_size=1, max_size=60),
    st.lists(st.integers(0, 3), min_size=128, max_size=128),
)
def test_each_row_goes_to_the_member_that_has_its_key_group_and_keeps_its_place_among_others(
    entries: list[tuple[int, int, bool]], owners: list[int]
) -> None:
    rows = routed(
        [row(f"k{key}", f"p{part}", n) for n, (key, part, _) in enumerate(entries)], TABLE, [delete for *_, delete in entries]
    )
    parts = split_by_member(rows, membership(owners, 4), TABLE)
    assert sum(len(part.group) for part in parts.values()) == len(entries)
    for member, part in parts.items():
        assert len(part.group)
        numbers = part.rows["ts"].to_pylist()
        assert numbers == sorted(numbers)
        assert len(set(part.groups)) == len(part.groups) == len(set(part.group.tolist())), "only groups that occur"
        for at, (partition, bucket) in zip(numbers, places(part), strict=True):
            assert owners[key_group(partition, bucket)] == member
            assert places(rows)[at] == (partition, bucket)
        assert part.keys.to_pylist() == [rows.keys[at].as_py() for at in numbers]
        assert part.deletes.to_pylist() == [entries[at][2] for at in numbers]


def test_rows_that_all_go_to_one_member_are_not_copied() -> None:
    rows = routed([row("a"), row("b")], TABLE)
    assert split_by_member(rows, membership([1] * 128, 2), TABLE) == {1: rows}
