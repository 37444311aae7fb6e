"""Files come compressed, from folders and patterns, and through standard input."""

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.load.inputs import input_files
from headgate_cli.output import Output
from headgate_cli.reading.sources import format_of, open_source

OUTPUT = Output(json=False)
ROWS = [{"id": number, "name": f"Köln {number * 7919 % 10007}"} for number in range(20_000)]
CSV = ("id,name\n" + "".join(f"{row['id']},{row['name']}\n" for row in ROWS)).encode()
JSON = "".join(f'{{"id": {row["id"]}, "name": "{row["name"]}"}}\n' for row in ROWS).encode()
FORMS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def rows_of(path: Path, kind: str) -> list[dict[str, object]]:
    return [row for piece in open_source(path, kind, None).pieces(0) for row in piece.rows.to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("suffix", "content"), [(".csv", CSV), (".jsonl", JSON)])
def test_a_compressed_file_has_the_rows_of_the_plain_one(form: str, suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}{form}"
    path.write_bytes(FORMS[form](content))
    assert rows_of(path, format_of(path)) == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_members_behind_each_other_are_one_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.csv{form}"
    path.write_bytes(FORMS[form](CSV[:100_000]) + FORMS[form](CSV[100_000:]))
    assert rows_of(path, "csv") == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_a_compressed_file_that_is_cut_off_is_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.csv{form}"
    path.write_bytes(FORMS[form](CSV)[:-40])
    with pytest.raises(CommandError, match="damaged or not complete"):
        rows_of(path, "csv")


def test_a_folder_stands_for_its_files_and_a_pattern_for_those_that_fit(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "in/c.jsonl", "_SUCCESS", ".d.csv", "notes.txt", "_old/e.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("id\n")
    with input_files(OUTPUT, [str(tmp_path)]) as found:
        assert [str(path.relative_to(tmp_path)) for path in found.paths] == ["a.csv.gz", "b.csv", "in/c.jsonl"]
    with input_files(OUTPUT, [str(tmp_path / "*.csv"), str(tmp_path / "notes.txt")]) as found:
        assert [path.name for path in found.paths] == ["b.csv", "notes.txt"]


@pytest.mark.parametrize("argument", ["nothing.csv", "*.csv", "."])
def test_an_argument_that_names_no_file_is_refused(argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match="no such file"), input_files(OUTPUT, [argument]):
        pass


def test_standard_input_is_a_file_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(CSV))))
    with input_files(OUTPUT, ["-"]) as found:
        (path,) = found.paths
        assert rows_of(path, "csv") == ROWS
        with pytest.raises(CommandError) as refused:
            format_of(path)
        assert "--format" in refused.value.fix
    assert not path.exists()
