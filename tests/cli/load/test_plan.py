"""The columns of files beside those of a table."""

from pathlib import Path

import pyarrow as pa
import pytest

import headgate as hg
from headgate_cli.failures import CommandError
from headgate_cli.load.plan import say_lacking, schema_of_files
from headgate_cli.output import Output
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import open_source

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("at", pa.int64()),
        pa.field("must", pa.int64(), nullable=False),
        ("price", pa.float64()),
        ("note", pa.string()),
    ]
)
TABLE = hg.TableInfo("sales", COLUMNS, ("id",), ("day",), "at", 4, hive_style=False, url="", uuid="", table_version=8)


def told(columns: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "up.csv"
    path.write_text(f"{columns}\n")
    say_lacking(Output(json=False), str(path), open_source(path, "csv", COLUMNS), TABLE)
    return capsys.readouterr().out


def test_columns_that_are_null_in_a_file_s_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("id,day,at,must", tmp_path, capsys) == "up.csv lacks price, note: null in its rows.\n"
    assert told("id,day,at,must,price,note", tmp_path, capsys) == ""


@pytest.mark.parametrize("columns", ["day,at,must", "id,at,must", "id,day,must", "id,day,at"])
def test_a_file_that_is_refused_for_a_column_that_is_never_null_is_not_said_to_have_nulls(
    columns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(columns, tmp_path, capsys) == ""


@pytest.mark.parametrize("text", ["", "[]", "\n", "{}\n"])
def test_a_new_table_is_not_made_of_an_empty_file(text: str, tmp_path: Path) -> None:
    full, empty = tmp_path / "full.json", tmp_path / "empty.json"
    full.write_text('{"id": 1}\n')
    empty.write_text(text)
    for files in ([empty], [full, empty]):
        with pytest.raises(CommandError, match=r"^empty\.json is empty: it has no columns"):
            schema_of_files(files, None, ReadOptions(casts=(("id", pa.int64()),)))
