"""OFFSETS slots and channel records (rules RO5, TM4, CH4, CH5), what a checkpoint's abort leaves (rule RO4), and who learns
when."""

from pathlib import Path

import pytest

from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.records import ChannelRecord, OwnerProcess
from headgate_tables.commitlog.tail import read_slot, read_state
from headgate_tables.errors import (
    DeposedError,
    OptionError,
    OutcomeUnknownError,
    StoreFullError,
    StoreUnavailableError,
    TableOwnedError,
    TransactionError,
)
from headgate_tables.storage.store import Outcome
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, SetClock, system

LIBRARY = OwnerProcess("library", "testhost", 1)
CLUSTER = OwnerProcess("cluster", "testhost", 2, "localhost:7070")
OTHER_CLUSTER = OwnerProcess("cluster", "otherhost", 3, "localhost:7171")
ONE = {"one": ChannelRecord(1, 0, "me", 1_000)}
TWO = {"two": ChannelRecord(1, 0, "you", 2_000)}


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(), {"answer": 42}, [("props", b"a=b")])
    return made


def open_log(store: FaultyStore, owner: OwnerProcess = CLUSTER) -> CommitLog:
    return CommitLog(store, LOG_LAYOUT, system(SetClock()), owner)


def commit(log: CommitLog, instant: str, **channels: ChannelRecord) -> None:
    log.commit(instant, [], lambda completion: [(f"done/{instant}", completion.encode())], channels)


def newest(store: FaultyStore) -> SlotKind:
    return read_slot(store, LOG_LAYOUT, read_state(store, LOG_LAYOUT)[0].n)[0].kind


def test_ch4_a_record_is_in_a_slot_when_winning_it_returns(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE)
    assert newest(store) is SlotKind.OFFSETS
    assert log.state.channels == read_state(store, LOG_LAYOUT)[0].channels == ONE


def test_ro5_offsets_alone_derive_no_file(store: FaultyStore) -> None:
    log = open_log(store)
    log.own()
    before = sorted(store.list_folder("").files), store.list_folder("").folders
    log.win_offsets(ONE)
    assert (sorted(store.list_folder("").files), store.list_folder("").folders) == before


def test_records_of_offsets_and_commits_are_one_registry_and_the_later_slot_counts(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE | TWO)
    commit(log, log.begin(), one=ChannelRecord(1, 7, "me", 3_000))
    log.win_offsets({"two": ChannelRecord(2, 5, "you", 4_000)})
    expected = {"one": ChannelRecord(1, 7, "me", 3_000), "two": ChannelRecord(2, 5, "you", 4_000)}
    assert log.state.channels == read_state(store, LOG_LAYOUT)[0].channels == open_log(store).state.channels == expected


def test_ch5_a_forgotten_channel_is_gone_and_may_come_back(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE | TWO)
    log.win_offsets({}, ["one", "never there"])
    assert read_state(store, LOG_LAYOUT)[0].channels == TWO
    log.win_offsets(ONE, ["two"])
    assert read_state(store, LOG_LAYOUT)[0].channels == ONE


def test_g1_records_survive_a_fold_and_a_takeover(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE)
    log.fold()
    log.win_offsets(TWO)
    successor = open_log(store, OTHER_CLUSTER)
    successor.own()
    assert successor.state.folded == log.state.folded > 0
    assert successor.state.channels == read_state(store, LOG_LAYOUT, folds=False)[0].channels == ONE | TWO


def test_tm4_an_offsets_slot_keeps_open_instants_alive_and_makes_given_up_ones_dead(store: FaultyStore) -> None:
    log = open_log(store)
    older, younger = log.begin(), log.begin()
    log.abandon(younger)
    log.win_offsets(ONE)
    state = read_state(store, LOG_LAYOUT)[0]
    assert older in state.reserved
    assert younger in state.dead
    assert younger not in state.reserved
    assert log.begin() > younger
    commit(log, older)
    assert list(read_state(store, LOG_LAYOUT)[0].commits) == [older]


def test_p1_offsets_wait_until_an_older_commit_is_published(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    store.before_create = lambda path: Outcome.UNKNOWN if path.startswith("done/") else None
    with pytest.raises(OutcomeUnknownError, match="decided the commit for good"):
        commit(log, instant)
    n = log.state.n
    with pytest.raises(StoreUnavailableError):
        log.win_offsets(ONE)
    assert read_state(store, LOG_LAYOUT)[0].n == n
    store.before_create = lambda path: None
    log.win_offsets(ONE)
    assert store.size(f"done/{instant}")


def test_offsets_that_the_store_refused_are_not_in_the_registry(store: FaultyStore) -> None:
    log = open_log(store)
    log.own()

    def full(path: str) -> Outcome | None:
        raise StoreFullError("full", fix="Make room.")

    store.before_create = full
    with pytest.raises(StoreFullError):
        log.win_offsets(ONE)
    assert not log.state.channels
    store.before_create = lambda path: None
    log.win_offsets(TWO)
    assert log.state.channels == read_state(store, LOG_LAYOUT)[0].channels == TWO


def test_c4_a_deposed_owner_wins_no_offsets(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE)
    successor = open_log(store, OTHER_CLUSTER)
    successor.own()
    with pytest.raises(DeposedError, match="cluster at localhost:7171"):
        log.win_offsets(TWO)
    successor.win_offsets(TWO)
    assert read_state(store, LOG_LAYOUT)[0].channels == ONE | TWO


def test_c4_offsets_of_unknown_outcome_are_repeated_at_the_same_slot(store: FaultyStore) -> None:
    log = open_log(store)
    log.own()
    slot = LOG_LAYOUT.slot_path(log.state.n + 1)
    store.after_create = lambda path, outcome: Outcome.UNKNOWN if path == slot and outcome is Outcome.CREATED else outcome
    log.win_offsets(ONE)
    assert read_state(store, LOG_LAYOUT)[0].channels == ONE
    assert LOG_LAYOUT.slot_path(log.state.n) == slot


def test_c6_decided_is_told_when_the_slot_is_won_and_before_anything_is_published(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    told: list[tuple[bool, int | None]] = []

    def decided() -> None:
        told.append((instant in read_state(store, LOG_LAYOUT)[0].commits, store.size(f"done/{instant}")))

    log.commit(instant, [], lambda completion: [(f"done/{instant}", b"done")], None, decided)
    assert told == [(True, None)]
    assert store.size(f"done/{instant}") == 4


def test_c6_decided_is_not_told_when_the_slot_is_lost(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    open_log(store, OTHER_CLUSTER).own()
    told: list[str] = []
    with pytest.raises(DeposedError):
        log.commit(instant, [], lambda completion: [], None, lambda: told.append(instant))
    with pytest.raises(DeposedError):
        log.commit(instant, [], lambda completion: [], None, lambda: told.append(instant))
    assert not told


def test_a_cluster_takes_the_table_of_a_cluster_and_a_library_does_not(store: FaultyStore) -> None:
    first, second = open_log(store), open_log(store, OTHER_CLUSTER)
    first.begin()
    second.begin()
    with pytest.raises(DeposedError):
        first.win_offsets(ONE)
    with pytest.raises(TableOwnedError, match=r"localhost:7171.*headgate\.connect\('localhost:7171'\)"):
        open_log(store, LIBRARY).begin()
    third = open_log(store)
    third.own()
    assert read_state(store, LOG_LAYOUT)[0].owner == CLUSTER


def test_ro2_offsets_between_two_checkpoints_change_nothing_about_their_order(store: FaultyStore) -> None:
    log = open_log(store)
    older, younger = log.begin(), log.begin()
    log.win_offsets(ONE)
    with pytest.raises(TransactionError, match="older"):
        commit(log, younger)
    commit(log, older)
    commit(log, younger)
    assert list(read_state(store, LOG_LAYOUT)[0].commits) == [older, younger]


def test_a_record_that_nobody_could_read_again_is_refused_before_there_is_a_slot(store: FaultyStore) -> None:
    log = open_log(store)
    log.win_offsets(ONE)
    for record in ([1, 7], [1, 7, "me", 0.5], [True, 7, "me", 1]):
        with pytest.raises(OptionError, match=r"slot 3 would hold: .*'body\.channels\.two' does not hold a list of"):
            log.win_offsets({"two": record})  # type: ignore[dict-item]
    log.win_offsets(TWO)
    assert open_log(store).state.channels == ONE | TWO
