"""Traces on paper that lost, doubled or hid a commit: pauses and lost answers between two steps of the log."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headgate_tables.commitlog.bodies import Offsets
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.folds import encode_fold
from headgate_tables.commitlog.layout import number_name
from headgate_tables.commitlog.records import DataFile
from headgate_tables.commitlog.slot import Slot, decode_slot
from headgate_tables.commitlog.tail import read_boundary, read_state
from headgate_tables.commitlog.unpublished import Unpublished
from headgate_tables.errors import (
    CorruptFileError,
    MissingFileError,
    OutcomeUnknownError,
    StoreUnavailableError,
    TransactionError,
    UnsupportedTableError,
)
from headgate_tables.hudi.decisions.retention import Clean
from headgate_tables.storage.store import FolderListing, Outcome
from support.commit_logs import busy, commit, open_log, unknown
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, SetClock, system


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(), {"answer": 42}, [("props", b"a=b")])
    return made


def test_p2_a_derived_file_of_unknown_outcome_is_repeated_until_it_is_there(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    store.before_create = unknown(5, "done/")
    commit(log, instant)
    assert store.get(f"done/{instant}").to_pybytes() == instant.encode()


def test_g1_a_slot_that_could_not_be_published_is_not_folded_away(store: FaultyStore) -> None:
    log = open_log(store)
    lost = log.begin()
    store.before_create = unknown(10**6, "done/")
    with pytest.raises(OutcomeUnknownError, match="decided the commit for good"):
        commit(log, lost)
    store.before_create = lambda path: None
    log.fold()
    assert store.get(f"done/{lost}").to_pybytes() == lost.encode()


def test_p1_an_interrupt_right_after_the_slot_was_won_does_not_let_the_next_one_be_published_first(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(store)
    instant = log.begin()

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt("pressed")

    with monkeypatch.context() as patch:
        patch.setattr(Unpublished, "publish_own", interrupt)
        with pytest.raises(KeyboardInterrupt, match="pressed"):
            commit(log, instant)
    log.begin()
    assert store.get(f"done/{instant}").to_pybytes() == instant.encode()


def test_p1_what_the_store_does_not_take_is_tried_again_until_it_is_there_and_before_anything_younger(store: FaultyStore) -> None:
    log = open_log(store)
    older, younger = log.begin(), log.begin()
    staged = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/younger"
    store.stage([(staged, [b"rows"])])
    store.before_create = unknown(10**6, "done/")
    with pytest.raises(OutcomeUnknownError, match="decided the commit for good"):
        commit(log, older)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            commit(log, younger)
    store.before_create = lambda path: None
    order: list[str] = []

    def noted(path: str, outcome: Outcome) -> Outcome:
        order.append(path)
        return outcome

    store.after_create = noted
    assert store.size(staged) == 4, "the stage of the present epoch was taken away"
    log.commit(younger, [DataFile("data/younger", 4, "", staged)], lambda completion: [(f"done/{younger}", b"x")])
    assert order == [f"done/{older}", LOG_LAYOUT.slot_path(log.state.n), f"done/{younger}"]


def test_t6_names_that_were_given_up_are_not_put_back_by_who_takes_over(store: FaultyStore) -> None:
    """The staged bytes of a cleaned file are there until the next fold, and so is the slot that committed it."""
    log = open_log(store)
    instant = log.begin()
    staged = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/file"
    store.stage([(staged, [b"rows"])])
    log.commit(instant, [DataFile("data/file", 4, "", staged)], lambda completion: [("done/x", b"x"), ("done/y", b"y")])
    names = ["data/file", "done/x"]
    log.decide(lambda time: Clean(instant=time, completion=time, names=names, earliest="", publish=[]))
    log.dead_names.delete_given_up()
    successor = open_log(store)
    successor.own()
    assert [store.size(name) for name in names] == [None, None]
    assert store.size("done/y") == 1
    successor.fold()
    assert [store.size(name) for name in names] == [None, None]


def test_d1_names_count_as_deleted_when_they_are(store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(store)
    commit(log)
    log.decide(lambda time: Clean(instant=time, completion=time, names=["done/x"], earliest="", publish=[]))

    def fails(paths: Sequence[str]) -> None:
        raise busy()

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", fails)
        with pytest.raises(StoreUnavailableError):
            log.dead_names.delete_given_up()
    commit(log)
    assert list(log.state.deleting.values()) == [["done/x"]]
    log.dead_names.delete_given_up()
    commit(log)
    assert log.state.deleting == {}


class InPlaceStore(FaultyStore):
    """As an object store's: nothing is staged, and no power cut leaves a part of a file."""

    stages = False  # type: ignore[misc]


@pytest.mark.parametrize(("kind", "found"), [(FaultyStore, b"another program's"), (InPlaceStore, b"theirs"), (InPlaceStore, b"")])
def test_p2_another_programs_file_under_a_name_of_ours_is_reported_and_stays(
    tmp_path: Path, kind: type[FaultyStore], found: bytes
) -> None:
    store = kind(tmp_path / "table")
    create_log(store, LOG_LAYOUT, system(), {"answer": 42}, [("props", b"a=b")])
    instant = commit(open_log(store))
    store.replace(f"done/{instant}", [found])
    with pytest.raises(CorruptFileError, match=f"done/{instant} is there, but holds something other"):
        open_log(store).own()
    assert store.get(f"done/{instant}").to_pybytes() == found


def test_p2_a_file_of_another_size_is_not_the_committed_one(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    staged = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/file"
    store.stage([(staged, [b"rows"])])
    log.commit(instant, [DataFile("data/file", 4, "", staged)], lambda completion: [("done/x", b"x")])
    store.delete([staged])
    store.replace("data/file", [b"row"])
    with pytest.raises(MissingFileError, match="data/file is committed"):
        open_log(store).own()


def test_g4_a_boundary_that_cannot_be_read_after_the_slot_is_no_failed_commit(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    log = open_log(store, clock)
    instant = log.begin()
    left = [3]
    real = store.list_folder

    def list_folder(folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        if folder == LOG_LAYOUT.bounds and left[0]:
            left[0] -= 1
            raise busy()
        return real(folder, after=after, sizes=sizes)

    monkeypatch.setattr(store, "list_folder", list_folder)
    commit(log, instant)
    assert list(log.state.commits) == [instant]
    assert clock.slept
    left[0] = 10**6
    with pytest.raises(OutcomeUnknownError, match="did not say"):
        commit(log)


def test_c4_a_taken_slot_that_cannot_be_read_is_no_failed_commit(store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(store)
    instant = log.begin()
    store.after_create = lambda path, outcome: (
        Outcome.UNKNOWN if LOG_LAYOUT.slots in path and outcome is Outcome.CREATED else outcome
    )
    left = [1]
    real = store.get

    def get(path: str) -> object:
        if LOG_LAYOUT.slots in path and left[0]:
            left[0] -= 1
            raise busy()
        return real(path)

    monkeypatch.setattr(store, "get", get)
    commit(log, instant)
    assert list(read_state(store, LOG_LAYOUT)[0].commits) == [instant]
    assert not left[0]


def test_g2_the_boundary_waits_for_the_fold(store: FaultyStore) -> None:
    log = open_log(store)
    commit(log)
    store.before_create = unknown(10**6, LOG_LAYOUT.folds)
    with pytest.raises(StoreUnavailableError, match=r"busy|did not say"):
        log.fold()
    assert read_boundary(store, LOG_LAYOUT) == log.state.folded == -1
    store.before_create = unknown(2, LOG_LAYOUT.folds)
    log.fold()
    assert store.size(f"{LOG_LAYOUT.folds}/{number_name(log.state.n)}")
    assert read_boundary(store, LOG_LAYOUT) == log.state.folded == log.state.n


def test_t5_a_fold_says_what_its_slots_say_also_after_a_rollback_that_no_slot_holds_yet(store: FaultyStore) -> None:
    log = open_log(store)
    commit(log)
    dead = log.begin()
    log.abandon(dead)
    log.fold()
    folded, whole = read_state(store, LOG_LAYOUT)[0], read_state(store, LOG_LAYOUT, folds=False)[0]
    assert encode_fold(folded) == encode_fold(whole)
    commit(log)
    assert dead in log.state.dead
    assert dead not in log.state.commits
    assert encode_fold(read_state(store, LOG_LAYOUT, folds=False)[0]) == encode_fold(log.state)


def test_ro4_an_abandoned_instant_is_not_given_out_again(store: FaultyStore) -> None:
    log = open_log(store)
    given = []
    for _ in range(5):
        given.append(log.begin())
        log.abandon(given[-1])
    assert given == sorted(set(given))


def test_ro2_an_instant_given_back_is_not_younger_than_one_that_is_open(store: FaultyStore) -> None:
    """Logs are merged in the order of their instants: what is begun later must have the larger one."""
    log = open_log(store)
    first, second = log.begin(), log.begin()
    log.release(first)
    third = log.begin()
    assert second < third
    with pytest.raises(TransactionError, match="older"):
        commit(log, third)
    commit(log, second)
    commit(log, third)
    assert third in read_state(store, LOG_LAYOUT)[0].commits


def test_t1_a_listing_that_misses_a_slot_created_meanwhile_is_no_gap(store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is not listed at one moment: of two slots created meanwhile the later one may be seen alone."""
    log = open_log(store)
    for _ in range(3):
        commit(log)
    real = store.list_folder

    def list_folder(folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        listing = real(folder, after=after, sizes=sizes)
        return FolderListing([name for name in listing.files if name != number_name(log.state.n - 1)], listing.folders)

    monkeypatch.setattr(store, "list_folder", list_folder)
    assert encode_fold(read_state(store, LOG_LAYOUT)[0]) == encode_fold(log.state)


def test_a_slot_for_a_newer_version_is_refused_not_misread() -> None:
    for key in ("min_reader", "min_writer"):
        body = replace(Offsets(channels={}, forget=[], min_reader=1, min_writer=1), **{key: 2})
        data = Slot(3, 1, "0" * 32, "0" * 64, body).encode()
        with pytest.raises(UnsupportedTableError, match="Upgrade"):
            decode_slot(data, LOG_LAYOUT, 3)


def test_w2_a_stage_made_again_by_a_process_that_was_paused_is_renamed_again(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try to own the table fails after the stages were renamed; the old leader stages once more; the second try."""
    old, new = open_log(store), open_log(store)
    commit(old)
    staged = f"{LOG_LAYOUT.stage_folder(old.state.epoch, 'process')}/file"
    store.stage([(staged, [b"1"])])
    with monkeypatch.context() as patch:
        patch.setattr(store, "create", lambda path, content, durable: _or_busy(store, path, content, durable=durable))
        with pytest.raises(StoreUnavailableError, match=r"busy|did not say"):
            new.begin()
    assert store.size(staged) is None
    store.stage([(staged, [b"2"])])
    commit(new)
    assert store.size(staged) is None


def _or_busy(store: FaultyStore, path: str, content: Sequence[bytes], *, durable: bool) -> Outcome:
    if "/slot/" not in path:
        raise busy()
    return FaultyStore.create(store, path, content, durable=durable)


def test_an_error_after_the_slot_was_won_never_says_that_nothing_was_done(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The staged bytes are gone (a successor has them), and whether there is a successor cannot be read."""
    log = open_log(store)
    instant = log.begin()
    path = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/file"
    real = store.list_folder
    monkeypatch.setattr(store, "list_folder", lambda folder, **options: _or_fail(real, folder, **options))
    with pytest.raises(OutcomeUnknownError, match="decided the commit for good"):
        log.commit(instant, [DataFile("data/file", 4, "", path)], lambda completion: [])


def _or_fail(real: Callable[..., FolderListing], folder: str, **options: object) -> FolderListing:
    if folder == LOG_LAYOUT.folds:
        raise busy()
    return real(folder, **options)


def test_creating_a_table_whose_files_cannot_be_put_in_place_says_that_it_is_there(store: FaultyStore) -> None:
    other = FaultyStore(Path(store._root).parent / "other")
    other.before_create = unknown(10**6, "props")
    with pytest.raises(OutcomeUnknownError, match="decided the table"):
        create_log(other, LOG_LAYOUT, system(), {}, [("props", b"a=b")])
    other.before_create = lambda path: None
    open_log(other).own()
    assert other.get("props").to_pybytes() == b"a=b"
