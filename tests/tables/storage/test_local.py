"""What only a local folder does: staging, links, syncs, and what the operating system refuses."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate_tables.errors import OptionError, StoreDeniedError, StoreFullError, TableGoneError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.local_files import make_folder
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.disks import immutable, remount, small_disk
from support.failing_syncs import fail_syncs
from support.store_process import call_store, strace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def shared_root() -> Iterator[Path]:
    """A folder that any user may enter (pytest's own may not be)."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with small_disk(tmp_path / "disk", 1 << 20) as folder:
        yield folder


def all_names(root: Path) -> list[str]:
    """Every name under the folder, temporary ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def touched(log: Path) -> list[str]:
    """The system calls that strace saw, without process numbers."""
    return [line.split(maxsplit=1)[1] for line in log.read_text().splitlines() if "(" in line]


# --- staging and links ---


def test_staged_files_are_linked_into_place_once(local: Store, root: Path) -> None:
    local.stage([(f"stage/1/{number}", [b"content ", str(number).encode()]) for number in range(8)])
    assert local.stages
    outcomes = local.link_all([("stage/1/3", "p=1/file"), ("stage/1/9", "p=1/other"), ("stage/1/4", "p=1/file")])
    assert outcomes == [Outcome.CREATED, None, Outcome.EXISTS]
    local.delete(["stage/1/3"])
    assert local.get("p=1/file").to_pybytes() == b"content 3"
    assert all_names(root / "stage/1") == ["0", "1", "2", "4", "5", "6", "7"]


def test_a_taken_name_is_not_staged_over(local: Store) -> None:
    local.stage([("stage/a", [b"old"])])
    with pytest.raises(FileExistsError, match="stage/a"):
        local.stage([("stage/a", [b"new"]), ("stage/b", [b"new"])])
    assert local.get("stage/a").to_pybytes() == b"old"


def test_a_missing_staged_file_is_not_linked(local: Store) -> None:
    assert local.link_all([("stage/a", "p=1/file")]) == [None]
    assert local.list_folder("p=1").files == []


def test_a_renamed_stage_folder_is_out_of_reach_of_its_old_name(local: Store) -> None:
    local.stage([("stage/1/a", [b"x"])])
    local.rename_folder("stage/1", "revoked/by/2/1")
    local.rename_folder("stage/1", "revoked/again")
    assert local.link_all([("stage/1/a", "file"), ("revoked/by/2/1/a", "file")]) == [None, Outcome.CREATED]
    assert local.list_folder("revoked").folders == ["by"]


def test_the_version_of_a_folder_changes_with_its_names(local: Store, root: Path) -> None:
    local.create("timeline/1", [b"x"], durable=False)
    os.utime(root / "timeline", ns=(0, 1))
    before = local.version("timeline")
    assert before is not None
    assert local.version("timeline") == before
    local.create("timeline/2", [b"x"], durable=False)
    assert local.version("timeline") != before


# --- files of others ---


def test_folders_that_are_named_like_temporary_files_are_listed(local: Store) -> None:
    local.create(".tmp-a/b", [b"x"], durable=False)
    for after in (None, ""):
        assert local.list_folder("", after=after).folders == [".tmp-a"]
    assert local.list_folder(".tmp-a").files == ["b"]


def test_temporary_files_of_killed_processes_are_not_listed(local: Store, root: Path) -> None:
    local.create("slot/1", [b"x"], durable=True)
    (root / "slot/.tmp-0123").write_bytes(b"half a sl")
    (root / "slot/.other").write_bytes(b"")
    assert sorted(local.list_folder("slot").files) == [".other", "1"]
    assert local.list_folder("slot", after=".tmp").files == ["1"]


def test_replacing_a_file_removes_its_hadoop_checksum(local: Store, root: Path) -> None:
    local.create(".hoodie/hoodie.properties", [b"a=1"], durable=True)
    (root / ".hoodie/.hoodie.properties.crc").write_bytes(b"crc\0 of a=1")
    (root / ".hoodie/.other.crc").write_bytes(b"crc\0")
    local.replace(".hoodie/hoodie.properties", [b"a=2"])
    assert all_names(root / ".hoodie") == [".other.crc", "hoodie.properties"]
    assert local.get(".hoodie/hoodie.properties").to_pybytes() == b"a=2"


def test_creating_leaves_nothing_but_the_file(local: Store, root: Path) -> None:
    for durable in (True, False):
        local.create("a", [b"x"], durable=durable)
        local.create("a", [b"y"], durable=durable)
        local.create_all([("a", [b"y"]), ("b", [b"x"]), ("c", [b""])], durable=durable)
        local.replace("a", [b"x"])
    assert all_names(root) == ["a", "b", "c"]


# --- durability ---


def test_a_durable_create_syncs_the_content_then_links_then_syncs_the_folder(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    names = "/^(openat|writev|fsync|link|linkat|unlink|unlinkat)$"
    root.mkdir()
    expression = "store.create('slot', [b'x'], durable=True)"
    assert call_store(root, expression, under=strace(log, names)) == "Outcome.CREATED"
    calls = [line for line in touched(log) if str(root) in line or line.startswith(("writev", "fsync"))]
    kinds = [line.partition("(")[0].removesuffix("at") for line in calls]
    assert kinds == ["open", "open", "writev", "fsync", "link", "unlink", "open", "fsync"]
    assert "O_PATH" in calls[0], "whether the folder is a link"
    assert "O_EXCL" in calls[1]
    assert "/.tmp-" in calls[1]
    assert "O_DIRECTORY" in calls[6]


def test_a_name_that_is_taken_is_made_durable_too(root: Path, tmp_path: Path) -> None:
    """Its creator may not have come to it, and who is told that it is there goes on."""
    root.mkdir()
    LocalStore(str(root), SystemIds()).create("slot", [b"x"], durable=False)
    log = tmp_path / "log"
    said = call_store(root, "store.create('slot', [b'y'], durable=True)", under=strace(log, "fsync", None, "-y"))
    assert said == "Outcome.EXISTS"
    assert f"<{root}>" in touched(log)[-1]


def test_folders_of_many_files_are_synced_once_each(root: Path, tmp_path: Path) -> None:
    for folder in "ab":
        (root / folder).mkdir(parents=True)
    log = tmp_path / "log"
    files = [(f"{folder}/{number}", [b"x"]) for folder in "ab" for number in range(5)]
    assert call_store(root, f"store.stage({files!r})", under=strace(log, "fsync")) == "None"
    assert len([call for call in touched(log) if call.startswith("fsync(")]) == 10 + 2


def test_a_new_folder_is_synced_into_the_one_above(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    log = tmp_path / "log"
    expression = "store.create('a/b/file', [b'x'], durable=True)"
    assert call_store(root, expression, under=strace(log, "fsync", None, "-y")) == "Outcome.CREATED"
    synced = [call.partition("<")[2].partition(">")[0] for call in touched(log)]
    assert {str(root), str(root / "a"), str(root / "a/b")} <= set(synced)


@pytest.mark.slow
@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("call", ["create('p/a', [b'x'], durable=True)", "stage([('p/a', [b'x'])])", "replace('p/a', [b'x'])"])
def test_a_failed_fsync_is_reported_and_never_tried_again(root: Path, tmp_path: Path, call: str, which: int) -> None:
    (root / "p").mkdir(parents=True)
    log = tmp_path / "log"
    said = call_store(root, f"store.{call}", under=strace(log, "fsync", f"error=EIO:when={which}"))
    assert said.startswith("SyncFailedError: fsync of ")
    assert len(touched(log)) == which
    assert [name for name in all_names(root) if ".tmp-" in name] == []
    assert LocalStore(str(root), SystemIds()).list_folder("p").files == ([] if which == 1 else ["a"])


@pytest.mark.slow
def test_one_failed_fsync_among_many_files_is_reported(root: Path, tmp_path: Path) -> None:
    (root / "p").mkdir(parents=True)
    files = [(f"p/{number}", [b"x"]) for number in range(20)]
    under = strace(tmp_path / "log", "fsync", "error=EIO:when=3")
    for call in ("stage", "create_all"):
        arguments = f"{files!r}, durable=True" if call == "create_all" else repr(files)
        assert call_store(root, f"store.{call}({arguments})", under=under).startswith("SyncFailedError: ")


def test_a_write_that_takes_a_part_is_continued(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    # strace reports five bytes as written without writing any, so the rest is what has to arrive.
    under = strace(tmp_path / "log", "writev", "retval=5:when=1")
    expression = "store.create('a', [b'abc', b'', b'defgh', b'ij'], durable=True)"
    assert call_store(root, expression, under=under) == "Outcome.CREATED"
    assert (root / "a").read_bytes() == b"fghij"


@pytest.mark.slow
@pytest.mark.parametrize("call", ["writev", "fsync:1", "/^link(at)?$", "/^unlink(at)?$", "fsync:2"])
def test_a_process_killed_while_creating_leaves_all_or_nothing(root: Path, tmp_path: Path, call: str) -> None:
    root.mkdir()
    name, _, which = call.partition(":")
    content = b"0123456789" * 1000
    expression = "store.create('slot', [b'0123456789' * 1000], durable=True)"
    assert call_store(root, expression, under=strace(tmp_path / "log", name, f"signal=KILL:when={which or 1}")) == "killed"
    store = LocalStore(str(root), SystemIds())
    there = store.size("slot") is not None
    assert there is (name.startswith("/^unlink") or which == "2")
    assert store.list_folder("").files == (["slot"] if there else [])
    assert store.create("slot", [content], durable=True) is (Outcome.EXISTS if there else Outcome.CREATED)
    assert store.get("slot").to_pybytes() == content


@pytest.mark.parametrize("error", ["EIO", "ETIMEDOUT"])
def test_a_link_whose_answer_was_lost_is_an_unknown_outcome(root: Path, tmp_path: Path, error: str) -> None:
    root.mkdir()
    under = strace(tmp_path / "log", "/^link(at)?$", f"error={error}:when=1")
    assert call_store(root, "store.create('slot', [b'x'], durable=True)", under=under) == "Outcome.UNKNOWN"
    assert all_names(root) == []
    assert LocalStore(str(root), SystemIds()).create("slot", [b"x"], durable=True) is Outcome.CREATED


def test_a_link_that_was_made_but_reported_as_taken_is_ours(root: Path, tmp_path: Path) -> None:
    """Rule C3. NFS repeats a request whose answer was lost; here every link is asked for twice."""
    root.mkdir()
    expression = """[
        setattr(os, 'link', lambda old, new, link=os.link: (link(old, new), link(old, new))),
        store.create('slot', [b'x'], durable=True),
        store.create('slot', [b'y'], durable=True),
    ][1:]"""
    assert call_store(root, expression) == str([Outcome.CREATED, Outcome.EXISTS])
    assert (root / "slot").read_bytes() == b"x"


# --- refusals ---


def test_a_full_disk_is_reported_and_what_was_there_stays(disk: Path) -> None:
    store = LocalStore(str(disk), SystemIds())
    large = os.urandom(700_000)
    assert store.create("p/first", [large], durable=True) is Outcome.CREATED
    for attempt in (
        lambda: store.create("p/second", [large], durable=True),
        lambda: store.create("p/second", [large], durable=False),
        lambda: store.create_all([("p/second", [large]), ("p/third", [large])], durable=True),
        lambda: store.stage([("p/second", [large])]),
        lambda: store.replace("p/first", [large]),
    ):
        with pytest.raises(StoreFullError, match=r"No space left on device\. Free space"):
            attempt()
    assert all_names(disk) == ["p", "p/first"]
    assert store.get("p/first").to_pybytes() == large
    store.delete(["p/first"])
    assert store.create("p/second", [large], durable=True) is Outcome.CREATED


def test_a_read_only_file_system_is_reported_and_can_be_read(disk: Path) -> None:
    store = LocalStore(str(disk), SystemIds())
    store.create("file", [b"x"], durable=True)
    remount(disk, "ro")
    for attempt in (
        lambda: store.create("other", [b"x"], durable=True),
        lambda: store.create("other", [b""], durable=False),
        lambda: store.create("new/folder/other", [b""], durable=False),
        lambda: store.stage([("other", [b"x"])]),
        lambda: store.replace("file", [b"x"]),
        lambda: store.delete(["file"]),
        lambda: store.link_all([("file", "other")]),
    ):
        with pytest.raises(StoreDeniedError, match=r"Read-only file system\. Give this process"):
            attempt()
    assert store.get("file").to_pybytes() == b"x"


@pytest.mark.slow
def test_a_read_only_folder_is_reported_and_can_be_read(shared_root: Path) -> None:
    (shared_root / "file").write_bytes(b"x")
    for expression in (
        "store.create('other', [b'x'], durable=True)",
        "store.create('other', [b''], durable=False)",
        "store.create('new/folder/other', [b'x'], durable=False)",
        "store.stage([('other', [b'x'])])",
        "store.replace('file', [b'y'])",
        "store.delete(['file'])",
    ):
        shared_root.chmod(0o555)
        assert "StoreDeniedError: " in call_store(shared_root, expression, as_nobody=True)
    assert call_store(shared_root, "store.get('file').to_pybytes()", as_nobody=True) == "b'x'"
    assert call_store(shared_root, "store.list_folder('').files", as_nobody=True) == "['file']"
    assert all_names(shared_root) == ["file"]


@pytest.mark.slow
def test_a_folder_without_permission_is_reported(shared_root: Path) -> None:
    closed = shared_root / "table"
    closed.mkdir()
    (closed / "file").write_bytes(b"x")
    closed.chmod(0)
    try:
        for expression in (
            "store.get('file')",
            "store.open_input('file')",
            "store.size('file')",
            "store.version('file')",
            "store.list_folder('')",
            "store.create('other', [b'x'], durable=True)",
        ):
            said = call_store(closed, expression, as_nobody=True)
            assert said.startswith("StoreDeniedError: ")
            assert "Permission denied. Give this process" in said
    finally:
        closed.chmod(0o755)


def test_an_immutable_folder_is_a_denial_and_not_a_file_system_without_hard_links(root: Path) -> None:
    root.mkdir()
    store = LocalStore(str(root), SystemIds())
    store.create("stage/file", [b"x"], durable=True)
    store.create("part/other", [b"x"], durable=True)
    with immutable(root / "part"):
        for attempt in (
            lambda: store.link_all([("stage/file", "part/file")]),
            lambda: store.create("part/file", [b"x"], durable=True),
        ):
            with pytest.raises(StoreDeniedError, match="Operation not permitted"):
                attempt()
    assert store.link_all([("stage/file", "part/file")]) == [Outcome.CREATED]


@pytest.mark.slow
def test_a_file_in_a_folder_that_may_not_be_opened_is_there_perhaps(shared_root: Path) -> None:
    """It could be created, and nobody can say whether its name survives a power cut."""
    for call in ("create('file', [b'x'], durable=True)", "create_all([('other', [b'x'])], durable=True)"):
        shared_root.chmod(0o333)
        said = call_store(shared_root, f"store.{call}", as_nobody=True)
        shared_root.chmod(0o777)
        assert "Outcome.UNKNOWN" in said
    shared_root.chmod(0o333)
    assert call_store(shared_root, "store.stage([('third', [b'x'])])", as_nobody=True).startswith("StoreDeniedError: ")
    assert call_store(shared_root, "store.sync([], [''])", as_nobody=True).startswith("StoreDeniedError: ")
    shared_root.chmod(0o777)
    assert all_names(shared_root) == ["file", "other", "third"]


def test_a_table_that_was_moved_away_is_not_created_again(root: Path, tmp_path: Path) -> None:
    store = LocalStore(str(root), SystemIds(), anchor=".hoodie")
    (root / ".hoodie").mkdir(parents=True)
    store.stage([("stage/one", [b"x"])])
    store.create("part/file", [b"x"], durable=True)
    attempts: dict[str, Callable[[], object]] = {
        "a file": lambda: store.create("other/file", [b"x"], durable=True),
        "an empty file": lambda: store.create(".hoodie/timeline/file", [b""], durable=False),
        "a staged file": lambda: store.stage([("stage/two/file", [b"x"])]),
        "a folder's new name": lambda: store.rename_folder("stage", "other/stage"),
        "a spool": lambda: store.spool("other/file", "spooled/file").__enter__(),
        "a replaced file": lambda: store.replace("other/file", [b"x"]),
    }
    (root / ".hoodie").rename(tmp_path / "away")
    left = all_names(root)
    for what, attempt in attempts.items():
        with pytest.raises(TableGoneError, match=rf"{root} holds no table any more: {root}/\.hoodie is gone\. Move"):
            attempt()
        assert all_names(root) == left, what
    with pytest.raises(TableGoneError):
        store.link_all([("stage/one", "other/file")])
    (tmp_path / "away").rename(root / ".hoodie")
    root.rename(tmp_path / "away")
    for what, attempt in attempts.items():
        if what != "a folder's new name":  # a folder that is missing is a success
            with pytest.raises(TableGoneError, match=f"{root} is gone"):
                attempt()
    with pytest.raises(TableGoneError):
        store.sync(["part/file"], [])
    assert not root.exists()
    (tmp_path / "away").rename(root)
    attempts["a file"]()
    attempts["a folder's new name"]()
    assert {"other/file", "other/stage/one", "part/file"} <= set(all_names(root))


def test_a_file_system_without_hard_links_is_refused(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    under = strace(tmp_path / "log", "/^link(at)?$", "error=EOPNOTSUPP")
    said = call_store(root, "store.create('slot', [b'x'], durable=True)", under=under)
    assert said.startswith("UnsafeStoreError: ")
    assert "no hard links" in said
    assert all_names(root) == []


def test_a_disk_error_while_reading_is_reported(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    (root / "file").write_bytes(b"x" * 100)
    under = strace(tmp_path / "log", "read", "error=EIO", "-P", str(root / "file"))
    assert "StoreUnavailableError" in call_store(root, "store.get('file')", under=under)


def test_a_name_too_long_is_a_mistake_of_the_call(local: Store) -> None:
    with pytest.raises(OptionError, match="File name too long"):
        local.create("x" * 256, [b"x"], durable=False)


def test_a_file_in_a_folders_place_is_reported(local: Store) -> None:
    local.create("a", [b"x"], durable=False)
    with pytest.raises(OptionError, match=r"Not a directory\. A file stands where a folder"):
        local.create("a/b", [b"x"], durable=False)


def test_a_folder_that_another_process_makes_at_the_same_moment_is_made_durable_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker may not have come to that, or may have failed there (hazard H14)."""
    (root / "p").mkdir(parents=True)
    syncs = fail_syncs(monkeypatch, "", times=0)
    make_folder(f"{root}/p")
    assert syncs.synced == [str(root)]
