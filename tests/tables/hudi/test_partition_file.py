"""``.hoodie_partition_metadata``: beside ``hoodie.properties`` the one file that others make under the same name as we do."""

import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.tail import read_state
from headgate_tables.hudi.groups import GroupIds
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.partition_file import encode_partition_file, is_usable, partition_file
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers, Outcome
from headgate_tables.system import SystemIds
from support.faults import FailingStore, InPlaceStore, KilledError
from support.golden import GOLDEN
from support.handles import open_on
from support.systems import SetClock, system
from support.tables import create, notes, rows

PATH = partition_file("q")
SPARKS = b"#partition metadata\n#Sun Nov 22 13:00:00 UTC 2026\ncommitTime=20261122130000000\npartitionDepth=1\n"
USABLE = [
    SPARKS,
    b"partitionDepth : 1\r\ncommitTime : 00000000000000000\r\n",
    b"commitTime=20261122130000000\npartitionDepth=1\nwriter=another\n",
]
NOT_USABLE = [
    b"",
    b"\0" * 96,
    SPARKS[:-20],
    b"commitTime=20261122130000000\npartitionDepth=2\n",
    b"commitTime=\npartitionDepth=1\n",
    b"\x89PNG\r\n\x1a\n",
    b"hoodie.table.checksum=1\ncommitTime=20261122130000000\npartitionDepth=1\n",
]
STORES = pytest.mark.parametrize("store", [FailingStore, InPlaceStore], ids=["staged", "in place"])


def test_every_partition_file_that_hudi_wrote_is_usable() -> None:
    """Fact HF11."""
    found = 0
    for golden in GOLDEN.rglob("*.zip"):
        files = zipfile.ZipFile(golden)
        for name in files.namelist():
            inside = re.fullmatch(r"[^/]+/((?:.+/)?\.hoodie_partition_metadata)", name)
            if inside and not inside[1].startswith(".hoodie/"):
                found += 1
                assert is_usable(inside[1], files.read(name)), name
    assert found > 50


@pytest.mark.parametrize("partition", ["", "q", "a=1/b=2"])
def test_ours_is_usable_where_it_belongs(partition: str) -> None:
    content = encode_partition_file(partition, "20261122130000000")
    assert is_usable(partition_file(partition), content) is True
    assert is_usable(partition_file(f"{partition}/deeper".lstrip("/")), content) is False
    assert is_usable("q/.hoodie_partition_metadata.parquet", content) is None
    assert is_usable(".hoodie/timeline/1.deltacommit", content) is None


def handle(path: Path, store: type[FailingStore]) -> hudi.Table:
    world = system(SetClock())
    return open_on(store(path / "table", world.ids), world)


def dying(kind: type[FailingStore]) -> type[FailingStore]:
    """The process dies before it creates the file of partition q."""

    class Dying(kind):  # type: ignore[valid-type, misc]
        def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
            if path == PATH:
                raise KilledError
            created: Outcome = super().create(path, content, durable=durable)
            return created

    return Dying


def met(path: Path, content: bytes) -> Path:
    """Another program has made the file of partition q."""
    file = path / "table" / PATH
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def goes_on(path: Path, store: type[FailingStore]) -> None:
    """Everywhere, by this handle and the next."""
    for number in (7, 8):
        table = handle(path, store)
        table.upsert(rows(("a", number, "later")))
        table.upsert(rows(("b", number, "later"), part="q"))
    assert notes(table) == {"a": "later", "b": "later"}
    assert table.verify().ok, table.verify().findings


@STORES
@pytest.mark.parametrize("content", USABLE)
def test_a_usable_file_of_another_program_is_taken_as_it_is(content: bytes, store: type[FailingStore], tmp_path: Path) -> None:
    create(tmp_path, system=system(SetClock())).upsert(rows(("a", 1, "first")))
    file = met(tmp_path, content)
    table = handle(tmp_path, store)
    table.upsert(rows(("b", 1, "first"), part="q"))
    assert file.read_bytes() == content
    goes_on(tmp_path, store)


@pytest.mark.slow
@STORES
@pytest.mark.parametrize("content", NOT_USABLE)
def test_a_file_that_no_reader_can_use_gives_way_to_ours(content: bytes, store: type[FailingStore], tmp_path: Path) -> None:
    create(tmp_path, system=system(SetClock())).upsert(rows(("a", 1, "first")))
    file = met(tmp_path, content)
    hadoops = file.with_name(f".{file.name}.crc")
    hadoops.write_bytes(b"crc\0")
    table = handle(tmp_path, store)
    done = table.upsert(rows(("b", 1, "first"), part="q"))
    assert file.read_bytes() == encode_partition_file("q", done.instant)
    assert not hadoops.exists(), "Hadoop would refuse to read the file"
    goes_on(tmp_path, store)


@STORES
@pytest.mark.parametrize("content", [SPARKS, b"neither"])
def test_a_commit_that_was_decided_before_another_program_made_the_file_is_put_in_place(
    content: bytes, store: type[FailingStore], tmp_path: Path
) -> None:
    """Also what an earlier version could not put in place."""
    create(tmp_path, system=system(SetClock())).upsert(rows(("a", 1, "first")))
    with pytest.raises(KilledError):
        handle(tmp_path, dying(store)).upsert(rows(("b", 1, "first"), part="q"))
    assert not (tmp_path / "table" / PATH).exists()
    assert read_state(LocalStore(str(tmp_path / "table"), SystemIds()), LOG_LAYOUT)[1][-1].kind is SlotKind.COMMIT
    met(tmp_path, content)
    goes_on(tmp_path, store)


def test_a_handle_that_only_commits_knows_a_partition_by_a_usable_file_alone(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert table.definition is not None
    groups = GroupIds(table.definition, table._store, lambda: table._snapshots.current().view)
    assert not groups.knows_partition("q")
    for content in [*USABLE, *NOT_USABLE]:
        met(tmp_path, content)
        assert groups.knows_partition("q") == (content in USABLE)


def test_the_file_in_parquet_form_is_left_alone(tmp_path: Path) -> None:
    create(tmp_path, system=system(SetClock())).upsert(rows(("a", 1, "first")))
    folder = met(tmp_path, SPARKS).parent
    (folder / ".hoodie_partition_metadata").unlink()
    footer = {"commitTime": "20261122130000000", "partitionDepth": "1"}
    empty = pa.schema([pa.field("dummyint", pa.int64())], metadata=footer).empty_table()
    pq.write_table(empty, folder / ".hoodie_partition_metadata.parquet")
    before = (folder / ".hoodie_partition_metadata.parquet").read_bytes()
    table = handle(tmp_path, FailingStore)
    table.upsert(rows(("b", 1, "first"), part="q"))
    goes_on(tmp_path, FailingStore)
    assert (folder / ".hoodie_partition_metadata.parquet").read_bytes() == before
    assert is_usable(PATH, (folder / ".hoodie_partition_metadata").read_bytes())
