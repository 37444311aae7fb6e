"""Old slots go, with the folds and boundaries before them, and nothing that anybody may still need (rules G2, G3)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.folds import encode_fold
from headgate_tables.commitlog.layout import number_name
from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import TableExistsError
from headgate_tables.storage.store import Outcome
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, SetClock, system

HOUR_MS = 3_600_000
"""What ``headgate.log.retire.after`` is unless somebody sets it."""


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(clock), {"answer": 42}, [("props", b"a=b")])
    return made


@pytest.fixture
def log(store: FaultyStore, clock: SetClock) -> CommitLog:
    """Folded three times, a minute apart, with two commits before each fold and one after the last."""
    made = CommitLog(store, LOG_LAYOUT, system(clock), OwnerProcess("library", "testhost", 1))
    for _ in range(3):
        commit(made)
        commit(made)
        clock.now += 60_000
        made.fold()
    commit(made)
    return made


def commit(log: CommitLog) -> None:
    instant = log.begin()
    log.commit(instant, [], lambda completion: [(f"done/{instant}", instant.encode())])


def numbers(store: FaultyStore, folder: str) -> list[int]:
    return sorted(int(name) for name in store.list_folder(folder).files)


def test_slots_stay_as_long_as_a_paused_process_may_send_one_of_their_numbers(
    store: FaultyStore, clock: SetClock, log: CommitLog
) -> None:
    folds = numbers(store, LOG_LAYOUT.folds)
    everything = numbers(store, LOG_LAYOUT.slots)
    clock.now += HOUR_MS - 120_000 - 1  # one millisecond before the first fold is an hour old
    log.truncate(HOUR_MS)
    assert numbers(store, LOG_LAYOUT.slots) == everything
    clock.now += 1
    log.truncate(HOUR_MS)
    assert numbers(store, LOG_LAYOUT.slots) == [0, *range(folds[0] + 1, log.state.n + 1)]
    clock.now += 60_000
    log.truncate(HOUR_MS)
    assert numbers(store, LOG_LAYOUT.slots) == [0, *range(folds[1] + 1, log.state.n + 1)]


def test_slot_0_stays_and_keeps_anybody_from_making_another_table_here(store: FaultyStore, log: CommitLog) -> None:
    log.truncate(0)
    assert numbers(store, LOG_LAYOUT.slots)[0] == 0
    with pytest.raises(TableExistsError):
        create_log(store, LOG_LAYOUT, system(), {}, [])


def test_however_old_the_newest_fold_is_slots_follow_the_one_before_it(
    store: FaultyStore, clock: SetClock, log: CommitLog
) -> None:
    """Who checks the log reads the slots between two folds, and compares."""
    older = numbers(store, LOG_LAYOUT.folds)[1]
    clock.now += 1_000 * HOUR_MS
    log.truncate(HOUR_MS)
    assert numbers(store, LOG_LAYOUT.slots) == [0, *range(older + 1, log.state.n + 1)]
    checked, slots = read_state(store, LOG_LAYOUT, folds=False)
    assert [slot.n for slot in slots] == list(range(older + 1, log.state.n + 1))
    assert encode_fold(checked) == encode_fold(read_state(store, LOG_LAYOUT)[0]) == encode_fold(log.state)


def test_folds_and_boundaries_go_but_for_the_one_that_holds_the_deleted_slots_and_the_newer_ones(
    store: FaultyStore, log: CommitLog
) -> None:
    folds = numbers(store, LOG_LAYOUT.folds)
    log.truncate(0)
    assert numbers(store, LOG_LAYOUT.folds) == numbers(store, LOG_LAYOUT.bounds) == folds[1:]


def test_the_newest_fold_is_the_one_that_is_read(store: FaultyStore, log: CommitLog) -> None:
    state, slots = read_state(store, LOG_LAYOUT)
    assert [slot.n for slot in slots] == list(range(state.folded + 1, log.state.n + 1))
    assert state.folded == numbers(store, LOG_LAYOUT.folds)[-1]


def test_fold_and_boundary_are_durable_before_any_slot_goes(
    store: FaultyStore, log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: dict[str, bool] = {}
    real = store.create

    def create(path: str, content: Sequence[bytes], *, durable: bool, seen: dict[str, bool] = durable) -> Outcome:
        seen[path] = durable
        return real(path, content, durable=durable)

    monkeypatch.setattr(store, "create", create)
    log.fold()
    name = number_name(log.state.n)
    assert durable == {f"{LOG_LAYOUT.folds}/{name}": True, f"{LOG_LAYOUT.bounds}/{name}": True}


def test_with_one_fold_alone_nothing_goes(store: FaultyStore, clock: SetClock) -> None:
    log = CommitLog(store, LOG_LAYOUT, system(clock), OwnerProcess("library", "testhost", 1))
    commit(log)
    log.fold()
    log.truncate(0)
    assert numbers(store, LOG_LAYOUT.slots) == list(range(log.state.n + 1))


def test_a_boundary_without_its_time_retires_nothing(store: FaultyStore, log: CommitLog) -> None:
    """A power cut on a disk that lied may leave the name alone."""
    folds = numbers(store, LOG_LAYOUT.folds)
    store.replace(f"{LOG_LAYOUT.bounds}/{number_name(folds[1])}", [b""])
    log.truncate(0)
    assert numbers(store, LOG_LAYOUT.slots)[:2] == [0, folds[0] + 1]
