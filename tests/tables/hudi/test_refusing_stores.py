"""A disk that is full, read-only or not ours to write: a typed error, nothing earlier is lost, the same handle goes on later."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import OutcomeUnknownError, StoreDeniedError, StoreFullError
from support.disks import fill, remount, run_as_nobody, small_disk
from support.refusals import refused
from support.tables import create, keys, notes, rows

FREE_SPACE = "Free space or raise the quota"
GIVE_ACCESS = "Give this process's user read and write access"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 2 << 20) as folder:
        yield folder


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that any user may enter (pytest's own may not be)."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def mixed() -> pa.Table:
    """Five files: four of a page and one of many."""
    small = [rows((f"s{number}", 1, "x"), part=f"small{number}") for number in range(4)]
    return pa.concat_tables([*small, rows(*((f"k{number}", 1, os.urandom(60).hex()) for number in range(396)), part="large")])


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_disk_that_is_full_in_the_middle_of_an_upsert_loses_nothing_and_the_handle_goes_on(disk: Path) -> None:
    table = create(disk, buckets=1)
    table.upsert(rows(("a", 1, "before")))
    before, commits = notes(table), table.commits()
    filler = fill(disk, 12)
    names = files(disk)
    for _ in range(3):
        with refused(StoreFullError, f"{disk}/table/.*: No space left on device", FREE_SPACE):
            table.upsert(mixed())
        left = {name for name in files(disk) - names if "/.headgate/slot/" not in name and "/timeline/" not in name}
        assert left == set(), "what was written of the call stays and keeps the disk full"
        assert notes(table) == before == notes(hudi.open_table(table.url))
        assert table.commits() == commits
    filler.unlink()
    assert table.upsert(mixed()).upserted == 400
    assert len(notes(table)) == 401
    assert table.verify().ok


@pytest.mark.parametrize("kind", ["upsert", "delete", "fence"])
def test_wherever_the_space_ends_the_call_is_done_or_not_done_and_says_so(disk: Path, kind: str) -> None:
    """One page more each time, until a call goes through. StoreFullError: nothing of it is there. OutcomeUnknownError: the slot
    stands, what readers need does not, and the next write puts it in place."""
    table = create(disk, buckets=1)
    table.upsert(rows(("a", 1, "first"), ("gone", 1, "x")))
    expected, met = notes(table), set()
    for pages in range(40):
        if kind == "fence":
            table = hudi.open_table(table.url)
        filler = fill(disk, pages)
        try:
            table.delete(keys(("gone", 2 + pages))) if kind == "delete" else table.upsert(rows(("a", 2 + pages, f"{pages}")))
            met.add("done")
        except (StoreFullError, OutcomeUnknownError) as error:
            met.add(type(error).__name__)
        filler.unlink()
        if not met & {"done", "OutcomeUnknownError"}:
            assert notes(table) == expected
            continue
        expected |= {"next": f"{pages}"} | ({"a": f"{pages}"} if kind != "delete" else {})
        expected.pop("gone" if kind == "delete" else "", None)
        table.upsert(rows(("next", pages, f"{pages}")))
        assert notes(table) == notes(hudi.open_table(table.url)) == expected
        if "done" in met:
            break
        met.discard("OutcomeUnknownError")
        met.add("unknown")
    assert met >= {"done", "StoreFullError"}
    assert table.verify().ok


def test_a_full_disk_at_a_fold_does_not_fail_the_commit(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 4)
    table = create(disk, buckets=1)
    for number in range(2):
        table.upsert(rows(("a", number, f"{number}")))
    filler = fill(disk, 0)
    with refused(StoreFullError, "fold", FREE_SPACE):
        table.upsert(rows(("a", 9, "9")))
    filler.unlink()
    assert notes(table) == {"a": "1"}
    table.upsert(rows(("a", 9, "9")))
    assert notes(hudi.open_table(table.url)) == {"a": "9"}


def test_a_table_is_not_created_on_a_full_disk_and_can_be_later(disk: Path) -> None:
    filler = fill(disk, 0)
    with refused(StoreFullError, "No space left", FREE_SPACE):
        create(disk)
    filler.unlink()
    table = create(disk)
    table.upsert(rows(("a", 1, "x")))
    assert notes(table) == {"a": "x"}


def test_a_disk_that_becomes_read_only_is_read_and_written_again_later(disk: Path) -> None:
    table = create(disk)
    table.upsert(rows(("a", 1, "x")))
    remount(disk, "ro")
    for handle in (table, hudi.open_table(table.url)):
        for call in (lambda table=handle: table.upsert(rows(("b", 1, "x"))), lambda table=handle: table.delete(keys(("a", 5)))):
            with refused(StoreDeniedError, f"{disk}/table/.*: Read-only file system", GIVE_ACCESS):
                call()
        assert notes(handle) == {"a": "x"}
        assert handle.verify().ok
    remount(disk, "rw")
    table.upsert(rows(("b", 1, "x")))
    assert notes(table) == {"a": "x", "b": "x"}


ATTEMPT = """
import sys
import pyarrow as pa
from headgate_tables import hudi
from headgate_tables.errors import TablesError
def attempt(name, call):
    try:
        print(name, call())
    except TablesError as error:
        print(name, type(error).__name__, error.message, "|", error.fix)
url = sys.argv[1]
row = pa.table({"id": ["b"], "part": ["p"], "ts": [1], "note": ["x"]})
attempt("create", lambda: hudi.create_table(url + "-new", row.schema, record_key="id"))
attempt("open", lambda: hudi.open_table(url).name)
attempt("read", lambda: hudi.open_table(url).scan().to_table().to_pylist())
attempt("verify", lambda: hudi.open_table(url).verify().ok)
attempt("upsert", lambda: hudi.open_table(url).upsert(row))
attempt("delete", lambda: hudi.open_table(url).delete(row))
"""


def attempts_of_nobody(url: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in run_as_nobody(ATTEMPT, url).splitlines())


@pytest.mark.slow
def test_a_reader_without_write_permission_reads_and_its_write_is_refused(shared: Path) -> None:
    table = create(shared)
    table.upsert(rows(("a", 1, "x")))
    before = files(shared)
    said = attempts_of_nobody(table.url)
    assert (said["open"], said["verify"]) == ("table", "True")
    assert said["read"] == str(rows(("a", 1, "x")).to_pylist())
    for call in ("upsert", "delete", "create"):
        assert said[call].startswith("StoreDeniedError /")
        assert f"{shared}/table" in said[call]
        assert f"Permission denied | {GIVE_ACCESS}" in said[call]
    assert files(shared) == before
    table.upsert(rows(("b", 1, "x")))
    assert notes(table) == {"a": "x", "b": "x"}


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["the table", "its properties", "a base file"])
def test_an_error_about_read_permission_names_the_file(shared: Path, closed: str) -> None:
    table = create(shared)
    table.upsert(rows(("a", 1, "x")))
    (base,) = (shared / "table/p").glob("*.parquet")
    path = {"the table": shared / "table", "its properties": shared / "table/.hoodie/hoodie.properties", "a base file": base}[
        closed
    ]
    path.chmod(0)
    said = attempts_of_nobody(table.url)
    path.chmod(0o755)
    assert said["open"] == "table" if closed == "a base file" else said["open"].startswith("StoreDeniedError")
    assert said["read"].startswith(f"StoreDeniedError {path}")
    assert GIVE_ACCESS in said["read"]
    assert notes(table) == {"a": "x"}
