"""Files become pieces of numbered rows, and a load goes on anywhere in them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.load.identity import identify
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import format_of, open_source

ROWS = pa.table({"id": [f"{number:07}" for number in range(150_000)], "n": pa.array(range(150_000), pa.int64())})

PLAIN = ReadOptions()


def write_csv(path: Path) -> None:
    pa_csv.write_csv(ROWS, path)


def write_jsonl(path: Path) -> None:
    ids, numbers = ROWS["id"].to_pylist(), ROWS["n"].to_pylist()
    path.write_text("".join(f'{{"id": "{key}", "n": {n}}}\n' for key, n in zip(ids, numbers, strict=True)))


def write_stream(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=7_000)


def write_parquet(path: Path) -> None:
    pq.write_table(ROWS, path, row_group_size=40_000)


KINDS: dict[str, Callable[[Path], None]] = {
    "rows.parquet": write_parquet,
    "rows.csv": write_csv,
    "rows.jsonl": write_jsonl,
    "rows.arrows": write_stream,
    "rows.feather": lambda path: feather.write_feather(ROWS, str(path), chunksize=7_000),
}


def open_kind(name: str, folder: Path) -> Source:
    path = folder / name
    KINDS[name](path)
    return open_source(path, format_of(path), ROWS.schema)


def rows_of(source: Source, skip: int) -> pa.Table:
    return pa.Table.from_batches([piece.rows for piece in source.pieces(skip)], ROWS.schema)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("skip", [0, 1, 39_999, 40_000, 149_999, 150_000, 200_000])
def test_what_is_behind_the_skipped_rows_is_read_whatever_the_format(name: str, skip: int, tmp_path: Path) -> None:
    assert rows_of(open_kind(name, tmp_path), skip).equals(ROWS.slice(skip))


@pytest.mark.parametrize("name", KINDS)
def test_pieces_are_numbered_by_their_last_row(name: str, tmp_path: Path) -> None:
    source = open_kind(name, tmp_path)
    for skip in (0, 12_345):
        ends = [(piece.last_row, piece.rows.num_rows, piece.rows["n"][-1].as_py()) for piece in source.pieces(skip)]
        assert [last for last, _, _ in ends] == [last_number + 1 for _, _, last_number in ends]
        assert ends[-1][0] == ROWS.num_rows
        assert sum(count for _, count, _ in ends) == ROWS.num_rows - skip


@pytest.mark.parametrize("name", KINDS)
def test_progress_grows_to_the_end_of_the_file(name: str, tmp_path: Path) -> None:
    source = open_kind(name, tmp_path)
    done = [piece.done for piece in source.pieces(0)]
    assert done == sorted(done)
    assert 0 <= source.total - done[-1] <= 8  # an Arrow stream ends with eight bytes that are no batch


def test_wide_rows_are_cut_below_the_limit_of_a_message(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"text": ["x" * 100_000] * 300}), path)
    pieces = list(open_source(path, "parquet", None).pieces(0))
    assert sum(piece.rows.num_rows for piece in pieces) == 300
    assert max(piece.rows.nbytes for piece in pieces) <= 5 << 20


def test_text_columns_keep_leading_zeros_because_the_table_says_so(tmp_path: Path) -> None:
    assert rows_of(open_kind("rows.csv", tmp_path), 0)["id"][7].as_py() == "0000007"


def test_only_what_was_named_is_null_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "nulls.csv"
    path.write_text('country,n\nNA,1\n,2\n"",3\n')
    schema = pa.schema([("country", pa.string()), ("n", pa.int64())])
    column = [piece.rows["country"].to_pylist() for piece in open_source(path, "csv", schema).pieces(0)]
    assert column == [["NA", None, ""]]
    with_na = [
        piece.rows["country"].to_pylist() for piece in open_source(path, "csv", schema, ReadOptions(nulls=("", "NA"))).pieces(0)
    ]
    assert with_na == [[None, None, ""]]


def test_a_damaged_line_stops_the_load_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("id,n\na,1\nb,two\n")
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    with pytest.raises(CommandError, match=r"bad\.csv.*two") as refused:
        list(open_source(path, "csv", schema).pieces(0))
    assert refused.value.code is ExitCode.FIX_CALL


def test_a_suffix_that_says_nothing_is_refused_with_those_that_do() -> None:
    with pytest.raises(CommandError) as refused:
        format_of(Path("rows.dat"))
    assert ".parquet" in refused.value.fix


def test_the_same_file_gives_the_same_channel_and_another_one_does_not(tmp_path: Path) -> None:
    first, second, other = tmp_path / "a" / "rows.csv", tmp_path / "b" / "rows.csv", tmp_path / "c" / "rows.csv"
    for path, text in ((first, "id\n1\n"), (second, "id\n1\n"), (other, "id\n2\n")):
        path.parent.mkdir()
        path.write_text(text)
    assert identify(first, "upsert", PLAIN) == identify(second, "upsert", PLAIN)
    names = {identify(first, "upsert", PLAIN), identify(other, "upsert", PLAIN), identify(first, "delete", PLAIN)}
    second.write_text("id\n1\n2\n")
    again = replace(identify(first, "upsert", PLAIN), again="1")
    assert len(names | {again, identify(second, "upsert", PLAIN)}) == 5


def test_a_change_far_behind_the_beginning_or_another_way_to_read_is_another_channel(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "1\n" * 100_000 + "2\n")
    before = identify(path, "upsert", PLAIN)
    path.write_text("id\n" + "1\n" * 100_000 + "3\n")
    edited = identify(path, "upsert", PLAIN)
    ways = [ReadOptions(timezone="UTC"), ReadOptions(nulls=("", "NA")), ReadOptions(casts=(("id", pa.string()),))]
    ways += [ReadOptions(renames=(("id", "key"),))]
    ways += [ReadOptions(skip_bad=True)]  # rows behind one that is left out have other numbers
    assert len({before, edited, *(identify(path, "upsert", way) for way in ways)}) == 7
    where = ReadOptions(skip_bad=True, max_errors=5, reject_file="x.csv")
    assert identify(path, "upsert", where) == identify(path, "upsert", ways[-1])
    assert identify(path, "upsert", ReadOptions(sample_rows=5)) == edited  # it chooses types of a new table alone


def test_identifys_are_legal_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / ("line\nbreak " + "ü" * 100 + ".csv")
    path.write_text("id\n")
    name = identify(path, "upsert", PLAIN).channel
    assert name.isprintable()
    assert len(name.encode()) <= 255


def test_dates_are_text_in_json_and_dates_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "days.jsonl"
    path.write_text('{"day": "2026-01-31", "n": 1}\n{"n": 2}\n')
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64())])
    (piece,) = open_source(path, "jsonl", schema).pieces(0)
    assert piece.rows.to_pylist() == [{"day": date(2026, 1, 31), "n": 1}, {"day": None, "n": 2}]
