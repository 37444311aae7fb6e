"""Texts where a table has bytes: hexadecimal or the text's own bytes, as --binary says, and never a guess."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.reading import json_text
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import open_source
from headgate_cli.table.export import csv_lines
from headgate_cli.table.json_lines import json_lines

VALUES = [b"\x00\xff", None, b"", b"00ff", b"\n"]
KINDS = {
    "binary": pa.array(VALUES, pa.binary()),
    "large binary": pa.array(VALUES, pa.large_binary()),
    "of a fixed size": pa.array([b"\x00\xff", None, b"ab"], pa.binary(2)),
}
LISTS = pa.array([[b"\x00", None], None, [b"", b"\xff"]], pa.list_(pa.field("element", pa.binary())))


def loaded(path: Path, content: bytes, schema: pa.Schema, **options: Any) -> list[Any]:
    path.write_bytes(content)
    source = open_source(path, "csv" if path.suffix == ".csv" else "jsonl", schema, ReadOptions(**options))
    return [value for piece in source.pieces(0) for value in piece.rows.column("raw").to_pylist()]


@pytest.mark.parametrize("name", ["file.csv", "file.jsonl"])
@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_bytes_that_a_scan_wrote_come_back(values: "pa.Array[Any]", name: str, tmp_path: Path) -> None:
    rows = pa.record_batch({"id": pa.array(range(len(values)), pa.int64()), "raw": values})
    content = b"id,raw\n" + csv_lines(rows) if name.endswith("csv") else json_lines(rows)
    assert loaded(tmp_path / name, content, rows.schema, binary="hex") == values.to_pylist()


def test_bytes_in_lists_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "BLOCK_BYTES", 8)
    rows = pa.record_batch({"raw": LISTS})
    assert loaded(tmp_path / "file.jsonl", json_lines(rows), rows.schema, binary="hex") == LISTS.to_pylist()


@pytest.mark.parametrize(("name", "content"), [("file.csv", 'id,raw\n1,\n2,""\n3,00ff\n'), ("file.jsonl", '{"raw": "00ff"}\n')])
def test_a_text_is_bytes_only_as_an_option_says(name: str, content: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("raw", pa.binary())])
    with pytest.raises(CommandError) as refused:
        loaded(tmp_path / name, content.encode(), schema)
    row = 3 if name.endswith("csv") else 1
    assert f"{name}: row {row}, column 'raw': '00ff' is no binary (may be hexadecimal, or a text" in refused.value.message
    assert "--binary hex" in refused.value.fix
    assert loaded(tmp_path / name, content.encode(), schema, binary="utf-8")[-1] == b"00ff"
    assert loaded(tmp_path / name, content.encode(), schema, binary="hex")[-1] == b"\x00\xff"


@pytest.mark.parametrize("text", ["0", "0g", "00 ff", "ü"])
def test_what_is_not_hexadecimal_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="row 2, column 'raw'"):
        loaded(tmp_path / "file.csv", f"raw\n00\n{text}\n".encode(), pa.schema([("raw", pa.binary())]), binary="hex")


def test_a_column_without_a_text_needs_no_option(tmp_path: Path) -> None:
    assert loaded(tmp_path / "file.csv", b'id,raw\n1,\n2,""\n', pa.schema([("raw", pa.binary())])) == [None, b""]
