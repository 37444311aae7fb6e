"""What every store does, on a local folder and in every kind of object store."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import CorruptFileError, OptionError
from headgate_tables.storage.store import FolderListing, Outcome, Store
from support.names import LITERAL_NAMES
from support.store_process import race_to_create


def create(store: Store, path: str, content: bytes) -> None:
    assert store.create(path, [content], durable=False) is Outcome.CREATED


def listed(store: Store, folder: str, after: str | None = None) -> tuple[list[str], list[str]]:
    found = store.list_folder(folder, after=after)
    return sorted(found.files), sorted(found.folders)


@pytest.mark.parametrize("durable", [True, False])
def test_a_created_file_is_read_back_whole(store: Store, durable: bool) -> None:
    content = bytes(range(256)) * 1000
    assert store.create("a/b/file", [content], durable=durable) is Outcome.CREATED
    assert store.get("a/b/file").to_pybytes() == content
    assert store.size("a/b/file") == len(content)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("content", [b"first", b""])
def test_a_second_create_finds_the_name_taken_and_changes_nothing(store: Store, durable: bool, content: bytes) -> None:
    assert store.create("file", [content], durable=durable) is Outcome.CREATED
    assert store.create("file", [b"second"], durable=durable) is Outcome.EXISTS
    assert store.create("file", [b""], durable=durable) is Outcome.EXISTS
    assert store.get("file").to_pybytes() == content
    assert store.size("file") == len(content)


def test_content_comes_in_pieces_of_any_kind(store: Store) -> None:
    pieces = [b"one,", b"", memoryview(b"two,"), pa.py_buffer(b"three,"), pa.py_buffer(b""), pa.array([1, 2]).buffers()[1]]
    assert store.create("mixed", pieces, durable=True) is Outcome.CREATED
    assert store.get("mixed").to_pybytes() == b"one,two,three," + (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    for name, piece in [("buffer", pa.py_buffer(b"alone")), ("view", memoryview(b"alone"))]:
        assert store.create(name, [piece], durable=True) is Outcome.CREATED
        assert store.get(name).to_pybytes() == b"alone"


def test_content_may_have_more_pieces_than_one_system_call_takes(store: Store) -> None:
    pieces = [str(number).encode() for number in range(3000)]
    assert store.create("many", pieces, durable=False) is Outcome.CREATED
    assert store.get("many").to_pybytes() == b"".join(pieces)


@pytest.mark.parametrize("durable", [True, False])
def test_many_files_are_created_with_an_outcome_each_in_their_order(store: Store, durable: bool) -> None:
    create(store, "p3/file", b"old")
    files = [(f"p{number}/file", [b"new", str(number).encode()]) for number in range(20)]
    outcomes = store.create_all(files, durable=durable)
    assert outcomes == [Outcome.EXISTS if number == 3 else Outcome.CREATED for number in range(20)]
    for number in range(20):
        assert store.get(f"p{number}/file").to_pybytes() == (b"old" if number == 3 else b"new%d" % number)


def test_creating_an_empty_list_of_files_succeeds(store: Store) -> None:
    assert store.create_all([], durable=True) == []


@pytest.mark.slow
def test_processes_that_race_for_a_name_have_one_winner(store: Store, options: dict[str, str] | None) -> None:
    names = [f"race/{number}" for number in range(20 if options else 100)]
    outcomes = race_to_create(store.url, options, names, racers=4)
    for name in names:
        said = [of_racer[name] for of_racer in outcomes]
        assert sorted(said) == ["created", "exists", "exists", "exists"]
        assert store.get(name).to_pybytes() == str(said.index("created")).encode()


def test_a_folder_lists_its_direct_children(store: Store) -> None:
    for path in ["top", "a/one", "a/two", "a/deep/er/three", "ab/four"]:
        create(store, path, b"x")
    assert listed(store, "") == (["top"], ["a", "ab"])
    assert listed(store, "a") == (["one", "two"], ["deep"])
    assert listed(store, "a/deep") == ([], ["er"])
    assert store.list_folder("nowhere") == FolderListing([], [])
    assert store.list_folder("nowhere", after="x") == FolderListing([], [])
    assert store.list_folder("a/one") == FolderListing([], [])


def test_a_folder_lists_only_what_follows_a_name(store: Store) -> None:
    names = ["1", "2", "2!", "2x", "3/f", "3/g", "3/h/i", "30", "4", "2/f"[:1] + "a/f", "a/b", "é"]
    for name in names:
        create(store, f"slot/{name}", b"x")
    assert listed(store, "slot", "2") == (["2!", "2x", "30", "4", "é"], ["2a", "3", "a"])
    assert listed(store, "slot", "2a") == (["2x", "30", "4", "é"], ["3", "a"])
    assert listed(store, "slot", "3") == (["30", "4", "é"], ["a"])
    assert listed(store, "slot", "") == (["1", "2", "2!", "2x", "30", "4", "é"], ["2a", "3", "a"])
    assert listed(store, "slot", "é") == ([], [])
    assert listed(store, "", "slo") == ([], ["slot"])
    assert listed(store, "", "slot") == ([], [])


def test_a_folder_lists_the_sizes_of_what_follows_a_name_if_asked_for(store: Store) -> None:
    for name in ["1", "2", "3", "3a/f"]:
        create(store, f"slot/{name}", name[0].encode() * int(name[0]))
    assert store.list_folder("slot", sizes=True).sizes == {"1": 1, "2": 2, "3": 3}
    assert store.list_folder("slot", after="1", sizes=True).sizes == {"2": 2, "3": 3}
    assert store.list_folder("slot", after="1").sizes == {}


@pytest.mark.parametrize("name", LITERAL_NAMES)
def test_a_name_is_taken_literally(store: Store, name: str) -> None:
    if store.url.startswith("az:") and "\\" in name:
        with pytest.raises(OptionError, match="Azure makes a slash of every backslash"):
            store.create(name, [b"x"], durable=False)
        return
    create(store, f"{name}/{name}", b"x")
    assert store.create(f"{name}/{name}", [b"y"], durable=False) is Outcome.EXISTS
    assert listed(store, "") == ([], [name])
    assert listed(store, name) == ([name], [])
    assert listed(store, name, after=name[:-1]) == ([name], [])
    assert store.get(f"{name}/{name}").to_pybytes() == b"x"
    store.delete([f"{name}/{name}"])
    assert store.size(f"{name}/{name}") is None


def test_a_path_does_not_leave_the_table(store: Store) -> None:
    with pytest.raises(CorruptFileError, match=r"\.\."):
        store.create("a/../../b", [b"x"], durable=False)
    with pytest.raises(CorruptFileError, match=r"\.\."):
        store.get("../b")


def test_a_path_that_is_not_a_file_is_not_found(store: Store) -> None:
    create(store, "folder/file", b"x")
    for path in ["nowhere", "folder", "folder/file/below"]:
        with pytest.raises(FileNotFoundError, match=path):
            store.get(path)
        with pytest.raises(FileNotFoundError, match=path):
            store.open_input(path)
        assert store.size(path) is None
    assert store.version("nowhere") is None


def test_a_replaced_file_has_its_new_content_and_another_version(store: Store) -> None:
    store.replace("p/hoodie.properties", [b"a=1"])
    first = store.version("p/hoodie.properties")
    assert first is not None
    assert store.version("p/hoodie.properties") == first
    store.replace("p/hoodie.properties", [b"a", b"=2"])
    assert store.get("p/hoodie.properties").to_pybytes() == b"a=2"
    assert store.version("p/hoodie.properties") not in (None, first)
    assert listed(store, "p") == (["hoodie.properties"], [])


def test_deleting_a_missing_file_succeeds(store: Store) -> None:
    for name in ["a", "b", "c/d"]:
        create(store, name, b"x")
    store.delete(["a", "nowhere", "c/d", "no/folder"])
    store.delete([])
    assert listed(store, "")[0] == ["b"]
    assert store.size("c/d") is None


def test_deleting_a_folder_takes_all_below_it_and_nothing_beside_it(store: Store) -> None:
    for name in ["a/one", "a/two/three", "ab", "abc/d"]:
        create(store, name, b"x")
    store.delete_folder("a")
    store.delete_folder("nowhere")
    assert listed(store, "") == (["ab"], ["abc"])


def test_files_and_folders_can_be_synced_afterwards(store: Store) -> None:
    for name in ["a/one", "b/two"]:
        create(store, name, b"x")
    store.sync(["a/one", "b/two"], ["", "a", "b"])
    assert store.get("a/one").to_pybytes() == b"x"


@pytest.mark.slow
@pytest.mark.parametrize("rows", [10, 1_500_000])
def test_columns_of_a_parquet_file_are_read_through_random_access(store: Store, rows: int) -> None:
    table = pa.table({"a": range(rows), "b": range(rows, 2 * rows), "c": range(2 * rows, 3 * rows)})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=1_000_000)
    create(store, "file.parquet", sink.getvalue())
    with store.open_input("file.parquet") as source:
        assert source.size() == len(sink.getvalue())
        assert pq.ParquetFile(source).read(columns=["a", "c"]).equals(table.select(["a", "c"]))
        source.seek(4)
        assert source.read(100) == sink.getvalue()[4:104]
        assert source.read_at(3_000_000, 7) == sink.getvalue()[7:3_000_007]


def test_an_empty_file_is_opened_and_has_no_bytes(store: Store) -> None:
    create(store, "empty", b"")
    with store.open_input("empty") as source:
        assert source.size() == 0
        assert source.read() == b""
    assert store.get("empty").size == 0
