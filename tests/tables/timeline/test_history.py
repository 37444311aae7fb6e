"""The archived timeline: as Spark writes it, repeatable after a stop anywhere, read no further back than asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.hudi.timeline.history import append_history, archived_completions, archived_metadata, obsolete_history
from headgate_tables.hudi.timeline.history_files import SCHEMA, Archived, HistoryFolder
from headgate_tables.storage.store import Outcome
from headgate_tables.system import SystemIds
from support.counting import CountingStore
from support.faults import FailingStore, Fault, KilledError
from support.golden import comparable, expected_rows, unpack
from support.histories import PATH, append, entries, entry, facts, instant, listed, names_in, store_in, stored, told
from support.readers import read_by_hudi_rs
from support.systems import FaultyStore

GOLDEN = "h120_v9_mor_archived"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(unpack(GOLDEN, tmp_path))


def of_spark(table: Path) -> list[tuple[str, list[Archived]]]:
    folder = HistoryFolder(store_in(table), "history")
    found = []
    for name in listed(table):
        rows = folder.read(name, SCHEMA.names).to_pylist()
        found.append((name, [Archived(*list(row.values())[:5]) for row in rows]))
    return found


def test_files_and_manifest_are_those_that_spark_writes(golden: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    for _, batch in of_spark(golden):
        append_history(store_in(ours), "history", batch)
    assert stored(ours) == stored(golden)
    assert {each.plan is not None for each in stored(ours) if each.action in ("commit", "clean")} == {True}
    assert (ours / PATH / "_version_").read_bytes() == (golden / PATH / "_version_").read_bytes()
    theirs_listed, ours_listed = (json.loads((each / PATH / "manifest_6").read_bytes()) for each in (golden, ours))
    assert [file["fileName"] for file in ours_listed["files"]] == [file["fileName"] for file in theirs_listed["files"]]
    for file in ours_listed["files"]:
        assert file["fileLen"] == (ours / PATH / file["fileName"]).stat().st_size
        assert shape(ours / PATH / file["fileName"]) == shape(golden / PATH / file["fileName"])


def shape(path: Path) -> tuple[object, ...]:
    """Types, whether null is allowed, codec, footer keys."""
    file = pq.ParquetFile(path)
    columns = [file.schema.column(index) for index in range(len(file.schema.names))]
    kinds = [(c.name, c.physical_type, str(c.logical_type), c.converted_type, c.max_definition_level) for c in columns]
    group = file.metadata.row_group(0)
    return kinds, {group.column(index).compression for index in range(6)}, file.metadata.metadata, group.num_rows


def test_readers_get_the_rows_of_spark_with_our_history_in_place_of_its_own(golden: Path) -> None:
    batches = of_spark(golden)
    before = told(golden)
    for file in (golden / PATH).iterdir():
        file.unlink()
    append_history(store_in(golden), "history", [each for _, batch in batches for each in batch])
    assert told(golden) == before
    wanted = expected_rows(GOLDEN)
    assert comparable(read_by_hudi_rs(golden).to_pylist()) == comparable(wanted.to_pylist())
    rows = hudi.open_table(str(golden)).scan(meta_columns=True).to_table()
    assert comparable(rows.to_pylist()) == comparable(wanted.select(rows.column_names).to_pylist())


def test_a_history_of_spark_is_continued(golden: Path) -> None:
    before, files = told(golden), listed(golden)
    append(golden, [1, 2, 3])
    assert told(golden) == before | facts([1, 2, 3])
    assert listed(golden) == [*files, f"{instant(10)}_{instant(30)}_0.parquet"]
    append_history(store_in(golden), "history", of_spark(golden)[2][1])
    assert listed(golden)[:-1] == files, "Spark's instants are known"


def test_instants_that_are_archived_already_are_skipped_and_a_repeated_call_changes_nothing(tmp_path: Path) -> None:
    append(tmp_path, [1, 2, 3])
    append(tmp_path, [2, 3, 4, 5])
    assert stored(tmp_path) == entries([1, 2, 3, 4, 5])
    files = {name: store_in(tmp_path).version(f"{PATH}/{name}") for name in names_in(tmp_path)}
    append(tmp_path, [5, 4, 1])
    append(tmp_path, [])
    assert {name: store_in(tmp_path).version(f"{PATH}/{name}") for name in names_in(tmp_path)} == files


def test_entries_come_in_any_order_and_never_twice(tmp_path: Path) -> None:
    append(tmp_path, [3, 1, 2])
    assert listed(tmp_path) == [f"{instant(10)}_{instant(30)}_0.parquet"]
    with pytest.raises(ValueError, match="two entries of one instant"):
        append(tmp_path, [4, 4])


def test_without_a_history_nothing_is_archived_and_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    append(tmp_path, [])
    assert (told(tmp_path), obsolete_history(store_in(tmp_path), "history"), names_in(tmp_path)) == ({}, [], [])
    assert archived_metadata(store_in(tmp_path), "history", [instant(1)]) == {}


def test_an_instant_without_a_completion_time_completed_when_it_began(tmp_path: Path) -> None:
    append_history(store_in(tmp_path), "history", [replace(entry(1), completion=None)])  # type: ignore[arg-type]
    assert told(tmp_path) == {instant(10): instant(10)}


# Stopped anywhere


def faults(after: bool, error: Callable[[], BaseException], dies: bool) -> Iterator[Fault]:
    at = 0
    while True:
        at += 1
        yield Fault(at, error, after=after, dies=dies)


def unavailable() -> BaseException:
    return StoreUnavailableError("no answer", fix="Wait.")


@pytest.fixture(scope="module")
def grown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A history of so many appends. With 9 files there the tenth is merged with them, with 99 twice."""
    path = tmp_path_factory.mktemp("grown")
    for number in range(request.param):
        append(path, [2 * number, 2 * number + 1])
    return path, request.param


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("grown", "error", "dies"),
    [*((there, KilledError, True) for there in (0, 2, 9, 99)), *((there, unavailable, False) for there in (0, 9))],
    indirect=["grown"],
)
def test_an_append_that_was_stopped_anywhere_is_repeated(
    grown: tuple[Path, int], tmp_path: Path, error: Callable[[], BaseException], dies: bool, after: bool
) -> None:
    template, there = grown
    old, new = range(2 * there), range(2 * there, 2 * there + 3)
    unbroken = copied(template, tmp_path / "unbroken")
    append(unbroken, new)
    stops = 0
    for fault in faults(after, error, dies):
        path = copied(template, tmp_path / f"stopped{fault.at}")
        store = FailingStore(path, SystemIds())
        store.fault = fault
        try:
            append_history(store, "history", entries(new))
        except (KilledError, StoreUnavailableError):
            stops += 1
        else:
            break
        assert told(path) in (facts(old), facts([*old, *new])), fault.happened
        append(path, new)
        assert stored(path) == entries([*old, *new]), fault.happened
        assert listed(path) == listed(unbroken), fault.happened
    assert stops >= 4


def copied(template: Path, path: Path) -> Path:
    target = path / PATH
    target.mkdir(parents=True)
    for name in names_in(template):
        (target / name).write_bytes((template / PATH / name).read_bytes())
    return path


def stopped_before(path: Path, call: str, numbers: Sequence[int]) -> None:
    """An append that dies before it creates or replaces the first file whose name begins so."""
    for fault in faults(False, KilledError, True):
        probe = copied(path, path.parent / f"{path.name}-{SystemIds().token()}")
        store = FailingStore(probe, SystemIds())
        store.fault = fault
        with pytest.raises(KilledError):
            append_history(store, "history", entries(numbers))
        if fault.happened.startswith(call):
            for name in names_in(probe):
                (path / PATH).mkdir(parents=True, exist_ok=True)
                (path / PATH / name).write_bytes((probe / PATH / name).read_bytes())
            return


def test_an_append_of_other_instants_goes_around_what_a_stopped_one_left(tmp_path: Path) -> None:
    """Same first and last instant, others between them: the name is taken by another content."""
    table = tmp_path / "table"
    append(table, [1])
    stopped_before(table, f"create {PATH}/manifest_", [2, 3, 5])
    left = f"{instant(20)}_{instant(50)}_0.parquet"
    assert left in names_in(table)
    append(table, [2, 4, 5])
    assert stored(table) == entries([1, 2, 4, 5])
    assert left not in listed(table)
    assert obsolete_history(store_in(table), "history") == [f"{PATH}/{left}"]


def test_a_file_of_a_stopped_append_is_kept_until_its_name_can_never_be_needed_again(tmp_path: Path) -> None:
    table = tmp_path / "table"
    append(table, [1])
    stopped_before(table, f"create {PATH}/manifest_", [2, 3])
    assert obsolete_history(store_in(table), "history") == [], "a name that was declared dead must never come back (D2)"
    append(table, [2, 3])
    assert stored(table) == entries([1, 2, 3])
    assert obsolete_history(store_in(table), "history") == []


def test_a_manifest_that_no_version_names_is_taken_over(tmp_path: Path) -> None:
    table = tmp_path / "table"
    append(table, [1])
    stopped_before(table, f"replace {PATH}/_version_", [2, 3])
    assert (told(table), "manifest_2" in names_in(table)) == (facts([1]), True)
    append(table, [4])
    assert stored(table) == entries([1, 2, 3, 4])
    assert (table / PATH / "_version_").read_text() == "3"


@pytest.mark.parametrize("content", [b"", b'{"files": [', b"{}"])
def test_half_a_manifest_of_a_killed_program_is_not_in_the_way(tmp_path: Path, content: bytes) -> None:
    append(tmp_path, [1])
    (tmp_path / PATH / "manifest_2").write_bytes(content)
    append(tmp_path, [2])
    assert stored(tmp_path) == entries([1, 2])
    assert (tmp_path / PATH / "manifest_2").read_bytes() == content
    dead = []
    for number in range(3, 6):
        append(tmp_path, [number])
        dead.append([path.rpartition("/")[2] for path in obsolete_history(store_in(tmp_path), "history")])
    assert dead == [["manifest_1"], ["manifest_1", "manifest_2"], ["manifest_1", "manifest_2", "manifest_3"]]


def test_half_a_file_of_a_killed_program_is_not_in_the_way(tmp_path: Path) -> None:
    append(tmp_path, [1])
    (tmp_path / PATH / f"{instant(20)}_{instant(40)}_0.parquet").write_bytes(b"PAR1")
    append(tmp_path, [2, 3, 4])
    assert stored(tmp_path) == entries([1, 2, 3, 4])
    (tmp_path / PATH / f"{instant(50)}_{instant(50)}_0.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptFileError, match=f"{instant(50)}.*move it away"):
        append(tmp_path, [5])


def test_a_version_file_that_spark_is_just_replacing_is_not_missed(tmp_path: Path) -> None:
    """Hudi deletes it before it creates the next one; readers then go by the newest manifest."""
    append(tmp_path, [1])
    append(tmp_path, [2])
    (tmp_path / PATH / "_version_").unlink()
    assert told(tmp_path) == facts([1, 2])
    append(tmp_path, [2])
    assert (tmp_path / PATH / "_version_").read_text() == "2"


def test_after_an_unknown_outcome_the_call_can_be_repeated(tmp_path: Path) -> None:
    for name in ("_0.parquet", "manifest_"):
        for created in (True, False):
            path = tmp_path / f"{name}{created}"
            store = FaultyStore(path)
            store.before_create = lambda at, n=name, c=created: Outcome.UNKNOWN if n in at and not c else None  # type: ignore[misc]
            store.after_create = lambda at, known, n=name: Outcome.UNKNOWN if n in at else known  # type: ignore[misc]
            with pytest.raises(StoreUnavailableError, match="did not say"):
                append_history(store, "history", entries([1, 2]))
            append(path, [1, 2])
            assert stored(path) == entries([1, 2])


def test_two_appends_at_once_do_not_overwrite_each_others_manifest(tmp_path: Path) -> None:
    append(tmp_path, [1])
    store = FaultyStore(tmp_path)

    def other(path: str) -> None:
        if "manifest_" in path:
            store.before_create = lambda _: None
            append(tmp_path, [2])

    store.before_create = other
    with pytest.raises(StoreUnavailableError, match="another process"):
        append_history(store, "history", entries([3]))
    append(tmp_path, [3])
    assert stored(tmp_path) == entries([1, 2, 3])


# Reading a part


def test_only_files_that_can_hold_what_is_asked_for_are_read(tmp_path: Path) -> None:
    for number in range(8):
        append(tmp_path, [2 * number, 2 * number + 1])
    store = CountingStore(tmp_path)
    assert archived_completions(store, "history", oldest=instant(110)) == facts([11, 12, 13, 14, 15])
    assert opened(store) == [5, 6, 7]
    with store.forgetting():
        assert archived_completions(store, "history", oldest=instant(151)) == {}
        assert opened(store) == []
    with store.forgetting():
        found = archived_metadata(store, "history", [instant(40), instant(45), instant(150), instant(999)])
        assert found == {instant(40): b"m4", instant(150): b"m15"}
        assert opened(store) == [2, 7]


def opened(store: CountingStore) -> list[int]:
    names = [path.rpartition("/")[2] for path in store.opened if path.endswith(".parquet")]
    return [(int(name.partition("_")[0]) - int(instant(0))) // 20 for name in names]


def test_metadata_come_back_byte_for_byte(golden: Path) -> None:
    wanted = {each.instant: each.metadata for each in stored(golden)}
    assert archived_metadata(store_in(golden), "history", list(wanted)) == wanted
    append_history(store_in(golden), "history", [replace(entry(1), metadata=None), replace(entry(2), metadata=b"")])
    assert archived_metadata(store_in(golden), "history", [instant(10), instant(20)]) == {instant(20): b""}


@pytest.mark.parametrize("damage", ["gone", "bytes", "columns", "name"])
def test_every_call_refuses_a_damaged_history_by_name(tmp_path: Path, damage: str) -> None:
    append(tmp_path, [1, 2])
    (name,) = listed(tmp_path)
    path, manifest = tmp_path / PATH / name, tmp_path / PATH / "manifest_1"
    if damage == "gone":
        path.unlink()
    elif damage == "bytes":
        path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    elif damage == "columns":
        pq.write_table(pq.read_table(path).rename_columns(["x", "y", "action", "z", "plan", "version"]), path)
    else:
        manifest.write_text(manifest.read_text().replace("_0.parquet", ".parquet"))
    for ask in (
        lambda: told(tmp_path),
        lambda: archived_metadata(store_in(tmp_path), "history", [instant(10)]),
        lambda: append(tmp_path, [1, 3]),
    ):
        with pytest.raises(CorruptFileError, match=r"history/.*Restore `\.hoodie/timeline`"):
            ask()
