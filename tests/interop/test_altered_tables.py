"""Columns that we add, widen and let be null: Spark, hudi-rs and we read the same, and Spark writes on (fact HF14)."""

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.face.altering import Alteration
from support.altered_rows import row
from support.readers import assert_all_agree, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable, read_by_spark
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
SPOT = pa.struct([("x", pa.int32())])
NEW = {
    "text": pa.string(),
    "number": pa.int64(),
    "real": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "amount": pa.decimal128(12, 3),
    "tags": pa.list_(pa.string()),
    "spot": SPOT,
}


def evolve(tracked: Tracked, alteration: Alteration) -> None:
    """The oracle's rows get the new columns as nulls, by their absence."""
    tracked.schema = tracked.table.alter(alteration).schema


@pytest.mark.parametrize("ordering", ["ts", None], ids=["event-time", "commit-time"])
@pytest.mark.parametrize("seed", [1, 2])
def test_columns_of_every_kind_added_one_by_one_between_random_operations(
    spark: Any, tmp_path: Path, ordering: str | None, seed: int
) -> None:
    choose = random.Random(f"{seed} {ordering}")
    tracked = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering=ordering)
    keys = [f"k{number}" for number in range(8, 14)]
    ts = 0
    for step, (name, kind) in enumerate([*NEW.items(), ("spots", pa.list_(SPOT)), ("flag", pa.bool_())]):
        for _ in range(choose.randint(1, 2)):
            ts += 1
            some = choose.sample(keys, 3)
            if choose.random() < 0.25:
                tracked.delete([row(tracked.schema, key, ts) for key in some[:1]])
            else:
                late = ts - 2 if choose.random() < 0.3 else ts
                tracked.upsert([row(tracked.schema, key, max(1, late)) for key in some])
        if choose.random() < 0.3:
            tracked.table.compact()
        if choose.random() < 0.2:
            tracked.table.clean()
        evolve(tracked, Alteration(add={name: kind}))
        if step % 3 == 2:
            assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.upsert([row(tracked.schema, key, ts + 1) for key in keys[:2]])
    assert_all_agree(spark, tracked.path, tracked.expected())
    assert not tracked.table.compact().dropped
    assert_all_agree(spark, tracked.path, tracked.expected())


def test_an_alteration_is_seen_before_the_next_row_comes(spark: Any, tmp_path: Path) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA)
    tracked.upsert([row(SCHEMA, "a", 1)])
    evolve(tracked, Alteration(add={"text": pa.string()}))
    assert_all_agree(spark, tracked.path, tracked.expected())


WIDER = [(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())]
WIDER += [(pa.decimal128(5, 2), pa.decimal128(9, 2)), (pa.decimal128(9, 2), pa.decimal128(18, 2))]
WIDER += [(pa.decimal128(18, 2), pa.decimal128(30, 2))]


PLACES = {"plain": "", "struct": ".c", "list": ".element", "map": ".value"}


def placed(place: str, kind: pa.DataType, number: float) -> tuple[pa.DataType, Any]:
    """A type with ``kind`` at this place, and a value with ``number`` there."""
    single = Decimal(number) if pa.types.is_decimal(kind) else pa.scalar(number, kind).as_py()
    match place:
        case "struct":
            return pa.struct([("c", kind)]), {"c": single}
        case "list":
            return pa.list_(kind), [single, None]
        case "map":
            return pa.map_(pa.string(), kind), [("k", single)]
        case _:
            return kind, single


def test_widened_columns_are_read_by_spark_at_once_and_by_hudi_rs_once_no_older_log_is_left(spark: Any, tmp_path: Path) -> None:
    columns = {f"{place}_{number}": (place, *kinds) for place in PLACES for number, kinds in enumerate(WIDER)}
    kinds = {name: placed(place, narrow, 0)[0] for name, (place, narrow, _) in columns.items()}
    tracked = Tracked(tmp_path / "t", pa.schema([("id", pa.string()), *kinds.items()]), buckets=1)

    def wide_row(key: str, number: float, *, wide: bool) -> dict[str, Any]:
        return {"id": key} | {name: placed(place, each[wide], number)[1] for name, (place, *each) in columns.items()}

    tracked.upsert([wide_row(key, 3, wide=False) for key in "abc"])
    tracked.upsert([wide_row("b", 5, wide=False)])
    evolve(tracked, Alteration(widen={f"{name}{PLACES[place]}": wide for name, (place, _, wide) in columns.items()}))
    for step in ("altered", "written", "compacted"):
        if step == "written":
            large = {name: placed(place, wide, 2**40)[1] for name, (place, _, wide) in columns.items() if wide == pa.int64()}
            tracked.upsert([wide_row("c", 7, wide=True) | large])
            assert_hudi_rs_refuses(tracked.path)
        if step == "compacted":
            assert not tracked.table.compact().dropped
            assert_same_rows(without_meta(read_by_hudi_rs(tracked.path)), tracked.expected(), "hudi-rs")
        assert_same_rows(read_by_us(tracked.path), tracked.expected(), f"our reader, {step}")
        assert_same_rows(without_meta(read_by_spark(spark, tracked.path)), tracked.expected(), f"Spark, {step}", fewer_types=True)


def assert_hudi_rs_refuses(path: Path) -> None:
    with pytest.raises(Exception, match=r"but the table schema expects|incompatible with target"):
        read_by_hudi_rs(path)


@pytest.mark.parametrize("place", ["s", "l.element", "m.value"])
def test_a_field_added_to_a_struct_is_null_in_older_rows_for_spark_at_once_and_for_hudi_rs_once_these_are_compacted(
    spark: Any, tmp_path: Path, place: str
) -> None:
    column = place.partition(".")[0]
    kinds: dict[str, pa.DataType] = {"s": SPOT, "l": pa.list_(SPOT), "m": pa.map_(pa.string(), SPOT)}

    def spots(**fields: int) -> Any:
        return {"s": fields, "l": [fields, None], "m": [("k", fields)]}[column]

    tracked = Tracked(tmp_path / "t", pa.schema([("id", pa.string()), (column, kinds[column])]), buckets=1)
    tracked.upsert([{"id": key, column: spots(x=1)} for key in "abc"])
    tracked.upsert([{"id": "b", column: spots(x=2)}])
    evolve(tracked, Alteration(add={f"{place}.y": pa.int64()}))
    tracked.upsert([{"id": "c", column: spots(x=3, y=2**40)}])
    assert_hudi_rs_refuses(tracked.path)
    for step in ("written", "compacted"):
        assert_same_rows(read_by_us(tracked.path), tracked.expected(), f"our reader, {step}")
        assert_same_rows(without_meta(read_by_spark(spark, tracked.path)), tracked.expected(), f"Spark, {step}", fewer_types=True)
        assert not tracked.table.compact().dropped
    assert_same_rows(without_meta(read_by_hudi_rs(tracked.path)), tracked.expected(), "hudi-rs")


def test_a_column_that_may_be_null_from_now_on(spark: Any, tmp_path: Path) -> None:
    strict = pa.schema([pa.field("id", pa.string()), pa.field("v", pa.int32(), nullable=False)])
    tracked = Tracked(tmp_path / "t", strict, buckets=1)
    tracked.upsert([{"id": "a", "v": 1}, {"id": "b", "v": 2}])
    evolve(tracked, Alteration(nullable=["v"]))
    tracked.upsert([{"id": "b", "v": None}, {"id": "c", "v": None}])
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.table.compact()
    assert_all_agree(spark, tracked.path, tracked.expected())


def test_spark_writes_to_an_altered_table_and_adds_a_column_and_we_adopt_that_and_go_on(spark: Any, tmp_path: Path) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    tracked.upsert([row(SCHEMA, key, 1) for key in ("a", "b", "cc")])
    evolve(tracked, Alteration(add={"text": pa.string(), "spot": SPOT}))
    tracked.upsert([row(tracked.schema, key, 2) for key in ("a", "d")])
    theirs = [row(tracked.schema, key, 3) | {"more": number} for number, key in enumerate(("b", "e"))]
    by_spark = SparkTable(
        spark,
        tracked.path.parent,
        tracked.path.name,
        partition=["part"],
        options={"hoodie.datasource.write.partitionpath.urlencode": "true"},
    )
    by_spark.upsert(pa.Table.from_pylist(theirs, tracked.schema.append(pa.field("more", pa.int64()))))
    tracked.oracle.upsert(theirs)
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed
    tracked.schema = tracked.table.schema
    assert tracked.schema.names[-1] == "more"
    assert_all_agree(spark, tracked.path, tracked.expected())
    evolve(tracked, Alteration(add={"last": pa.bool_()}))
    tracked.upsert([row(tracked.schema, key, 4) | {"last": True} for key in ("e", "f")])
    assert_all_agree(spark, tracked.path, tracked.expected())


def test_a_restore_to_before_an_alteration_is_seen_by_all(spark: Any, tmp_path: Path) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA, buckets=1)
    tracked.upsert([row(SCHEMA, key, 1) for key in ("a", "b")])
    expected, saved = tracked.expected(), tracked.table.savepoint()
    evolve(tracked, Alteration(add={"text": pa.string()}))
    tracked.upsert([row(tracked.schema, "a", 2)])
    tracked.table.restore(saved)
    assert_all_agree(spark, tracked.path, expected)
