"""Files that are written piece by piece, on a local folder and in object stores."""

from __future__ import annotations

import gc
import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import DeposedError, StoreFullError, SyncFailedError
from headgate_tables.storage import local
from headgate_tables.storage import spool as spools
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Outcome, Spool, Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy

PIECES = [b"one,", b"", memoryview(b"two,"), pa.py_buffer(b"three"), bytes(3 << 20)]
WHOLE = b"".join(bytes(memoryview(piece)) for piece in PIECES)


def staged(store: Store) -> str:
    return ".hoodie/.headgate/stage/1/me/file" if store.stages else ""


def give_up_after(spool: Spool, content: bytes) -> None:
    spool.file.write(content)
    raise StoreFullError("no space", fix="Make room.")


def test_what_was_written_in_pieces_is_read_back_whole_with_its_size_and_checksum(store: Store) -> None:
    with store.spool("p/file", staged(store)) as spool:
        for piece in PIECES:
            assert spool.file.write(piece) == memoryview(piece).nbytes
        assert store.size("p/file") is None
        assert spool.create() is Outcome.CREATED
    assert store.get("p/file").to_pybytes() == WHOLE
    assert (spool.file.size, spool.file.sha256) == (len(WHOLE), hashlib.sha256(WHOLE).hexdigest())


def test_a_piece_of_which_the_disk_takes_a_part_is_written_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a disk does that is almost full, or one write of more than 2 GiB."""
    real = os.write
    store = LocalStore(str(tmp_path / "table"), SystemIds())
    with store.spool("p/file", staged(store)) as spool:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
            assert spool.file.write(b"one,two,three") == 13
        assert spool.create() is Outcome.CREATED
    assert store.get("p/file").to_pybytes() == b"one,two,three"
    assert (spool.file.size, spool.file.sha256) == (13, hashlib.sha256(b"one,two,three").hexdigest())


def test_a_taken_name_stays_as_it_is(store: Store) -> None:
    assert store.create("p/file", [b"first"], durable=True) is Outcome.CREATED
    with store.spool("p/file", staged(store)) as spool:
        spool.file.write(b"second")
        assert spool.create() is Outcome.EXISTS
    assert store.get("p/file").to_pybytes() == b"first"


def test_an_empty_file_can_be_spooled(store: Store) -> None:
    with store.spool("file", staged(store)) as spool:
        assert spool.create() is Outcome.CREATED
    assert store.get("file").to_pybytes() == b""


def test_a_spool_that_is_given_up_leaves_nothing(store: Store) -> None:
    with pytest.raises(StoreFullError), store.spool("p/file", staged(store)) as spool:
        give_up_after(spool, b"half")
    assert store.size("p/file") is None
    assert store.list_folder("p").files == []
    assert store.list_folder(".hoodie/.headgate/stage/1/me").files == []


@pytest.mark.slow
def test_a_parquet_writer_that_is_given_up_with_its_spool_writes_into_no_other_file(store: Store, tmp_path: Path) -> None:
    """pyarrow finishes a file when its writer is collected; the descriptor's number belongs to another file by then."""
    rows = pa.table({"a": [1]})
    with store.spool("p/file", staged(store)) as spool:
        writer = pq.ParquetWriter(pa.PythonFile(spool.file, mode="w"), rows.schema)
    others = [os.open(tmp_path / str(number), os.O_WRONLY | os.O_CREAT) for number in range(20)]
    del writer
    gc.collect()
    for other in others:
        os.close(other)
    assert all((tmp_path / str(number)).stat().st_size == 0 for number in range(20))


def test_parquet_is_written_through_a_spool(store: Store) -> None:
    rows = pa.table({"a": range(1000)})
    with store.spool("file.parquet", staged(store)) as spool:
        with pq.ParquetWriter(pa.PythonFile(spool.file, mode="w"), rows.schema) as writer:
            writer.write_table(rows)
        spool.create()
    assert pq.read_table(store.open_input("file.parquet")).equals(rows)


# --- local disks ---


def test_the_name_of_a_file_is_durable_whoever_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path / "table"), SystemIds())
    for outcome in (Outcome.CREATED, Outcome.EXISTS):
        with store.spool("p/file", staged(store)) as spool:
            spool.file.write(b"x")
            synced: list[str] = []
            with monkeypatch.context() as patch:
                patch.setattr(local, "sync_folder", lambda path, synced=synced: synced.append(path))
                assert spool.create() is outcome
        assert synced[-1:] == [str(tmp_path / "table/p")]


def test_a_staged_name_that_is_taken_is_an_error_and_stays(local: Store) -> None:
    local.stage([("stage/file", [b"another attempt's"])])
    with pytest.raises(FileExistsError), local.spool("p/file", "stage/file"):
        pass
    assert local.get("stage/file").to_pybytes() == b"another attempt's"


def test_without_a_staged_name_the_bytes_wait_under_one_that_no_listing_shows(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), SystemIds())
    with store.spool("p/file", "") as spool:
        spool.file.write(b"x")
        assert len(list((tmp_path / "p").iterdir())) == 1
        assert store.list_folder("p").files == []
        spool.create()
    assert [file.name for file in (tmp_path / "p").iterdir()] == ["file"]


def test_a_revoked_stage_is_told_from_a_disk_that_is_gone(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), SystemIds())
    store.create("p/other", [b"x"], durable=False)
    with store.spool("p/file", "stage/1/file") as spool:
        store.rename_folder("stage/1", "stage/1.revoked")
        with pytest.raises(DeposedError):
            spool.create()
    assert store.size("p/file") is None


def test_nothing_is_created_when_the_bytes_cannot_be_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int, path: str) -> None:
        raise SyncFailedError(path, fix="")

    monkeypatch.setattr(spools, "sync_open", failing)
    store = LocalStore(str(tmp_path), SystemIds())
    with pytest.raises(SyncFailedError), store.spool("file", "stage/file") as spool:
        spool.create()
    assert store.list_folder("").files == []
    assert store.list_folder("stage").files == []


def test_a_full_disk_is_said_to_be_full() -> None:
    file = spools.HashedFile(os.open("/dev/full", os.O_WRONLY), "/dev/full")
    with pytest.raises(StoreFullError):
        file.write(b"x")


# --- object stores ---


@pytest.mark.parametrize(("fault", "there"), [(Fault.DROP_ANSWER, True), (Fault.DROP_REQUEST, False), (409, False), (503, False)])
def test_an_upload_without_an_answer_is_unknown(behind: Store, proxy: FaultyProxy, fault: Fault | int, there: bool) -> None:
    proxy.arm("PUT", fault)
    with behind.spool("file", "") as spool:
        spool.file.write(b"content")
        assert spool.create() is Outcome.UNKNOWN
    assert (behind.size("file") == 7) is there
    assert len([seen for seen in proxy.seen if seen.startswith("PUT")]) == 1
