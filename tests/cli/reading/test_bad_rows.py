"""Bad rows of a CSV end a load, or are left out, within limits, and come back after mending."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import open_source

TABLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
BAD = """id,name,day
1,a,2024-01-01
x,b,2024-01-02
3,"c, d",never
4,e
5,,2024-01-05
6,f,2024-01-06,7
y,"",never
8,"",2024-01-08
"""
LEFT = [1, 5, 8]


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], BadRows]:
    reading = ReadOptions(**{"skip_bad": True, **options})
    bad = BadRows(reading)
    rows = [row for piece in open_source(path, "csv", TABLE, reading, bad).pieces(0) for row in piece.rows.to_pylist()]
    return rows, bad


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "bad.csv"
    found.write_text(BAD)
    return found


def test_the_rows_that_are_left_are_those_that_duckdb_keeps(path: Path) -> None:
    rows, bad = read(path)
    kinds = "{'id': 'BIGINT', 'name': 'VARCHAR', 'day': 'DATE'}"
    theirs = (
        duckdb.connect().sql(f"SELECT * FROM read_csv('{path}', columns={kinds}, ignore_errors=true, header=true)").fetchall()
    )
    assert [row["id"] for row in rows] == LEFT
    assert [(row["id"], row["day"]) for row in rows] == [(row[0], row[2]) for row in theirs]
    assert [row["name"] for row in rows] == ["a", None, ""]
    assert len(bad.errors) == 5


def test_errors_name_the_file_the_row_or_line_the_column_and_the_value(path: Path) -> None:
    messages = sorted(error.message for error in read(path)[1].errors)
    assert "bad.csv: line 5 has 2 columns, and the others have 3" in messages
    assert "bad.csv: row 2, column 'id': 'x' is no int64" in messages
    assert "bad.csv: row 3, column 'day': 'never' is no date" in messages
    with pytest.raises(CommandError, match="Expected 3 columns, got 2"):
        read(path, skip_bad=False)


def test_the_first_bad_row_ends_a_load_that_leaves_none_out(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,name,day\n1,a,\nx,b,\n3,c,\n")
    with pytest.raises(CommandError, match="row 2, column 'id': 'x' is no int64"):
        read(tmp_path / "bad.csv", skip_bad=False)


def test_rejected_rows_are_loaded_after_mending_and_all_rows_are_there_then(path: Path) -> None:
    rejected = path.with_name("rejected.csv")
    source = open_source(path, "csv", TABLE, ReadOptions(skip_bad=True))
    first, bad = read(path)
    bad.write(rejected, source.header)
    lines = rejected.read_text().splitlines()
    assert lines[0] == '"id","name","day"'
    assert {"4,e", "6,f,2024-01-06,7", '"3","c, d","never"', '"y","","never"'} < set(lines)
    text = rejected.read_text().replace("4,e", "4,e,2024-01-04").replace("06,7", "06")
    rejected.write_text(text.replace("never", "2024-01-03").replace('"x"', "2").replace('"y"', "7"))
    second, none = read(rejected)
    assert not none.errors
    assert sorted(row["id"] for row in first + second) == list(range(1, 9))
    assert {row["id"]: row["name"] for row in second} == {2: "b", 3: "c, d", 4: "e", 6: "f", 7: ""}


def test_a_rejected_file_has_the_delimiter_and_the_encoding_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes("id;name;day\n1;Köln;2024-01-01\nx;Zürich;2024-01-02\n".encode("cp1252"))
    _, bad = read(path, encoding="cp1252")
    bad.write(tmp_path / "rejected.csv", open_source(path, "csv", TABLE, ReadOptions(encoding="cp1252")).header)
    assert (tmp_path / "rejected.csv").read_bytes().decode("cp1252") == '"id";"name";"day"\n"x";"Zürich";"2024-01-02"\n'


def test_no_bad_row_no_file(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id,name,day\n1,a,2024-01-01\n")
    _, bad = read(tmp_path / "good.csv")
    bad.write(tmp_path / "rejected.csv", "id\n")
    assert not (tmp_path / "rejected.csv").exists()


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_load_stops_at_one_bad_row_more_than_allowed(limit: int, path: Path) -> None:
    with pytest.raises(CommandError, match=rf"; {limit} bad rows were left out before it") as refused:
        read(path, max_errors=limit)
    assert "--max-errors" in refused.value.fix
    assert [row["id"] for row in read(path, max_errors=5)[0]] == LEFT


@pytest.mark.slow
@pytest.mark.parametrize("skip", [0, 1, 2, 3, 90_000, 199_997, 199_998])
def test_a_load_goes_on_behind_the_rows_that_were_sent_with_rows_left_out_before(skip: int, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    bad = {2, 70_000, 199_999}
    path.write_text("id,name,day\n" + "".join(f"{'x' if n in bad else n},{'n' * 40},\n" for n in range(200_000)))
    reading = ReadOptions(skip_bad=True)
    pieces = list(open_source(path, "csv", TABLE, reading).pieces(0))
    sent = [
        (piece.last_row - piece.rows.num_rows + at + 1, n)
        for piece in pieces
        for at, n in enumerate(piece.rows["id"].to_pylist())
    ]
    assert len(sent) == 200_000 - len(bad)
    assert [number for number, _ in sent] == sorted({number for number, _ in sent})
    again = [n for piece in open_source(path, "csv", TABLE, reading).pieces(skip) for n in piece.rows["id"].to_pylist()]
    assert again == [n for number, n in sent if number > skip]
