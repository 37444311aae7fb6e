"""Types that a table lacks become wider ones by themselves; a loss needs --cast."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import open_source

INSTANT = pa.timestamp("us", tz="UTC")
WIDER: dict[str, tuple[pa.DataType, list[Any], pa.DataType]] = {
    "uint8": (pa.uint8(), [0, 255], pa.int32()),
    "uint16": (pa.uint16(), [0, 65_535], pa.int32()),
    "uint32": (pa.uint32(), [0, 2**32 - 1], pa.int64()),
    "uint64": (pa.uint64(), [0, 2**63 - 1], pa.int64()),
    "nanoseconds": (pa.timestamp("ns", tz="UTC"), [1_000, 1_700_000_000_123_456_000], INSTANT),
}


def stored(folder: Path, values: "pa.Array[Any]", **options: Any) -> Source:
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"x": values}), path)
    return open_source(path, "parquet", None, ReadOptions(**options))


def column(source: Source) -> "pa.ChunkedArray[Any]":
    return pa.Table.from_batches([piece.rows for piece in source.pieces(0)])["x"]


@pytest.mark.parametrize(("kind", "values", "wider"), WIDER.values(), ids=WIDER)
def test_a_type_becomes_wider_and_its_values_stay_equal(
    kind: pa.DataType, values: list[Any], wider: pa.DataType, tmp_path: Path
) -> None:
    given = pa.array([*values, None], kind)
    source = stored(tmp_path, given)
    assert source.schema.field("x").type == wider
    assert column(source).type == wider
    assert column(source).cast(kind).combine_chunks().equals(given)


def test_digits_are_cut_off_only_by_a_cast(tmp_path: Path) -> None:
    given = pa.array([1_000, 1_001], pa.timestamp("ns", tz="UTC"))
    with pytest.raises(CommandError, match=r"rows\.parquet: row 2, column 'x'") as refused:
        column(stored(tmp_path, given))
    assert "--cast 'x=timestamp'" in refused.value.fix
    assert column(stored(tmp_path, given, casts=(("x", INSTANT),))).cast(pa.int64()).to_pylist() == [1, 1]


def test_a_cast_never_makes_another_number_of_a_whole_number(tmp_path: Path) -> None:
    given = pa.array([1, 2**63], pa.uint64())
    with pytest.raises(CommandError, match="row 2, column 'x'") as refused:
        column(stored(tmp_path, given))
    assert "--cast 'x=decimal(20,0)'" in refused.value.fix
    assert column(stored(tmp_path, given, casts=(("x", pa.decimal128(20, 0)),))).to_pylist() == [1, 2**63]
    with pytest.raises(CommandError, match="row 2"):
        column(stored(tmp_path, given, casts=(("x", pa.int32()),)))


def test_times_of_int96_reach_beyond_the_range_of_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "spark.parquet"
    days = pa.array([253_402_214_400_000_000, -62_135_596_800_000_000], pa.timestamp("us"))  # 9999-12-31, 0001-01-01
    pq.write_table(pa.table({"x": days}), path, use_deprecated_int96_timestamps=True)
    source = open_source(path, "parquet", None, ReadOptions(timezone="UTC"))
    assert column(source).combine_chunks().equals(days.cast(INSTANT))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (pa.array([1_001], pa.timestamp("ns", tz="UTC")), "1970-01-01 00:00:00.000001001Z"),
        (pa.array([[1_001]], pa.list_(pa.timestamp("ns"))), "[1970-01-01 00:00:00.000001001]"),
        (pa.array([2**63], pa.uint64()), "9223372036854775808"),
    ],
)
def test_a_value_that_python_lacks_is_shown_with_all_its_digits(given: "pa.Array[Any]", shown: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        column(stored(tmp_path, given, timezone="UTC"))
    assert refused.value.message.startswith(f"rows.parquet: row 1, column 'x': {shown} is no ")
