"""A table's folder is all that its paths lead to: no link, pipe or path in it opens, lists, writes or deletes anything else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables.errors import CorruptFileError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.paths import check_path
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds
from support.refusals import refused

READS: dict[str, Callable[[Store, str], object]] = {
    "get": lambda store, folder: store.get(f"{folder}/file"),
    "open_input": lambda store, folder: store.open_input(f"{folder}/file"),
    "list_folder": lambda store, folder: store.list_folder(folder),
    "list_folder after": lambda store, folder: store.list_folder(folder, after="a"),
}
WRITES: dict[str, Callable[[Store, str], object]] = {
    "create": lambda store, folder: store.create(f"{folder}/new", [b"x"], durable=True),
    "create empty": lambda store, folder: store.create(f"{folder}/new", [b""], durable=False),
    "create in a new folder": lambda store, folder: store.create(f"{folder}/new/er", [b"x"], durable=False),
    "create_all": lambda store, folder: store.create_all([(f"{folder}/new", [b"x"])], durable=False),
    "stage": lambda store, folder: store.stage([(f"{folder}/new", [b"x"])]),
    "replace": lambda store, folder: store.replace(f"{folder}/file", [b"x"]),
    "link to": lambda store, folder: store.link_all([("inner/file", f"{folder}/new")]),
    "link from": lambda store, folder: store.link_all([(f"{folder}/file", "taken-in")]),
    "spool": lambda store, folder: store.spool(f"{folder}/new", "").__enter__(),
    "spool from a stage": lambda store, folder: store.spool("new", f"{folder}/new").__enter__(),
    "delete": lambda store, folder: store.delete([f"{folder}/file"]),
    "delete_folder": lambda store, folder: store.delete_folder(f"{folder}/below"),
    "rename_folder": lambda store, folder: store.rename_folder(f"{folder}/below", "taken-in"),
}
STRANGE = ["../file", "p/../../file", "/etc/passwd", "p//file", "p/\0", "p/\ud800", "p/" + "x" * 3000 + "/../y"]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside/below").mkdir(parents=True)
    (tmp_path / "outside/file").write_bytes(b"secret")
    return tmp_path / "outside"


@pytest.fixture
def store(tmp_path: Path, outside: Path) -> Store:
    """Of a folder with a file, and links to others, that is itself reached by a link."""
    real = tmp_path / "real"
    (real / "inner").mkdir(parents=True)
    (real / "inner/file").write_bytes(b"own")
    (real / "away").symlink_to(outside)
    (real / "along").symlink_to("inner")
    (real / "link").symlink_to(outside / "file")
    (real / "circle").symlink_to("circle")
    (tmp_path / "table").symlink_to(real)
    return LocalStore(str(tmp_path / "table"), SystemIds())


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() if file.is_file() else b"" for file in folder.rglob("*")}


def test_a_table_may_be_reached_by_a_link(store: Store, tmp_path: Path) -> None:
    assert store.get("inner/file").to_pybytes() == b"own"
    assert store.open_input("inner/file").read() == b"own"
    assert store.list_folder("inner").files == ["file"]
    store.create("inner/new/file", [b"x"], durable=True)
    other = tmp_path / "other"
    (tmp_path / "real").rename(other)
    (tmp_path / "table").unlink()
    (tmp_path / "table").symlink_to(other)
    assert store.get("inner/new/file").to_pybytes() == b"x", "the link leads elsewhere since"


def test_a_file_in_the_root_is_spooled_without_a_stage(store: Store) -> None:
    with store.spool("file", "") as spool:
        spool.file.write(b"x")
        spool.create()
    assert store.get("file").to_pybytes() == b"x"


@pytest.mark.parametrize("call", [*READS.values(), *WRITES.values()], ids=[*READS, *WRITES])
@pytest.mark.parametrize("folder", ["away", "along"])
def test_behind_a_link_nothing_is_read_or_changed(
    store: Store, outside: Path, folder: str, call: Callable[[Store, str], object]
) -> None:
    before = everything(outside)
    with refused(CorruptFileError, rf"/{folder}\S* is a link, or lies behind one", "no links in it"):
        call(store, folder)
    assert everything(outside) == before


@pytest.mark.parametrize("read", ["get", "open_input"])
@pytest.mark.parametrize("name", ["link", "circle"])
def test_a_file_that_is_a_link_is_not_read(store: Store, read: str, name: str) -> None:
    with refused(CorruptFileError, name, "no links in it"):
        getattr(store, read)(name)


@pytest.mark.parametrize("read", ["get", "open_input"])
def test_nobody_waits_for_a_pipe(store: Store, tmp_path: Path, read: str) -> None:
    os.mkfifo(tmp_path / "real/pipe")
    began = time.monotonic()
    with refused(CorruptFileError, "pipe is not a file", "Remove it"):
        getattr(store, read)("pipe")
    assert time.monotonic() - began < 30
    assert store.size("pipe") is None


@pytest.mark.parametrize("path", STRANGE)
def test_a_path_that_metadata_cannot_mean_is_refused_and_not_echoed_whole(store: Store, path: str) -> None:
    for call in (store.get, store.size, store.list_folder, lambda path: store.delete([path])):
        with pytest.raises(CorruptFileError, match="which the table's metadata names as a file") as caught:
            call(path)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("path", ["", "p/file", "p/..file", "a..b", "день=1/ü", "p/\udcff"])
def test_other_paths_are_not(path: str) -> None:
    check_path(path)
