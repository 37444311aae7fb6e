"""The commit log's rules, each named by its letter, on real files."""

import itertools
import json
from pathlib import Path

import pytest

from headgate_tables.commitlog.bodies import Dead, Fence, SlotKind
from headgate_tables.commitlog.commit_log import FOLD_EVERY, CommitLog
from headgate_tables.commitlog.facts import GENESIS_HASH
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.folds import encode_fold
from headgate_tables.commitlog.records import DataFile, OwnerProcess
from headgate_tables.commitlog.slot import Slot, decode_slot, seal
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_slot, read_state
from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import (
    ClockError,
    CorruptFileError,
    DeposedError,
    OutcomeUnknownError,
    StoreFullError,
    TableExistsError,
    TableOwnedError,
    TransactionError,
    UnsupportedTableError,
)
from headgate_tables.storage.store import Outcome
from support.log_layout import LOG_LAYOUT
from support.systems import NOON, FaultyStore, SetClock, answers, system

LIBRARY = OwnerProcess("library", "testhost", 1)
CLUSTER = OwnerProcess("cluster", "testhost", 2, "localhost:7070")


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(), {"answer": 42}, [("props", b"a=b")])
    return made


def open_log(
    store: FaultyStore, clock: SetClock | None = None, owner: OwnerProcess = LIBRARY, *, take_over: bool = False
) -> CommitLog:
    return CommitLog(store, LOG_LAYOUT, system(clock), owner, take_over=take_over)


def commit(log: CommitLog, instant: str = "") -> tuple[str, str]:
    instant = instant or log.begin()
    completion = log.commit(instant, [], lambda completion: [(f"done/{instant}_{completion}", instant.encode())])
    return instant, completion


def stage(store: FaultyStore, log: CommitLog, name: str) -> DataFile:
    path = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/{name}"
    store.stage([(path, [b"rows"])])
    return DataFile(f"data/{name}", 4, "", path)


def test_creating_wins_slot_zero_and_derives_its_files(store: FaultyStore) -> None:
    assert store.get("props").to_pybytes() == b"a=b"
    assert read_slot(store, LOG_LAYOUT, 0)[0].kind is SlotKind.CONFIG
    with pytest.raises(TableExistsError):
        create_log(store, LOG_LAYOUT, system(), {}, [])


def test_opening_writes_nothing_and_the_first_transaction_fences(store: FaultyStore) -> None:
    log = open_log(store)
    assert read_state(store, LOG_LAYOUT)[0].n == 0
    log.begin()
    state = read_state(store, LOG_LAYOUT)[0]
    assert (state.n, state.epoch, state.owner) == (1, 1, LIBRARY)


@pytest.mark.parametrize("fenced", [True, False], ids=["by its owner", "by who opens it"])
def test_a_floor_in_the_future_is_gone_on_from_once_somebody_has_accepted_it(store: FaultyStore, fenced: bool) -> None:
    clock = SetClock(NOON + 3_600_000)
    log = open_log(store, clock)
    first = [commit(log) for _ in range(2)]
    clock.now = NOON
    log = log if fenced else open_log(store, clock)
    with pytest.raises(ClockError, match="--future-times"):
        commit(log)
    floor = log.accept_future_times()
    assert floor >= max(time for pair in first for time in pair)
    pairs = first + [commit(log) for _ in range(FOLD_EVERY)]
    assert pairs == sorted(set(pairs))
    completions = [completion for _, completion in pairs]
    assert completions == sorted(set(completions))
    assert completions[-1] < format_time(NOON + 3_601_000), "times run away from the clock"
    log.fold()
    later = open_log(store, clock)
    instant, completion = commit(later)
    assert completions[-1] < instant < completion
    clock.now = NOON + 7_200_000
    assert commit(later)[1] > format_time(clock.now), "real time has caught up"
    assert later.accept_future_times() == ""


def test_a_floor_that_was_accepted_accepts_no_further_jump(store: FaultyStore) -> None:
    clock = SetClock(NOON + 3_600_000)
    log = open_log(store, clock)
    commit(log)
    clock.now = NOON
    log.accept_future_times()
    commit(log)
    clock.now = NOON + 86_400_000
    commit(log)
    clock.now = NOON + 1000
    with pytest.raises(ClockError):
        commit(log)


def test_no_time_in_the_future_is_nothing_to_accept(store: FaultyStore) -> None:
    log = open_log(store)
    assert log.accept_future_times() == ""
    assert read_state(store, LOG_LAYOUT)[0].n == 0


def test_who_asks_the_log_learns_of_another_owner_without_a_slot_of_his_own(store: FaultyStore) -> None:
    older = open_log(store)
    older.check_owner()  # owns nothing yet
    commit(older)
    older.check_owner()
    assert open_log(store).own()
    with pytest.raises(DeposedError):
        older.check_owner()
    assert not older.owned
    assert read_state(store, LOG_LAYOUT)[0].epoch == 2, "asking wrote something"


def test_who_asks_the_log_learns_of_another_owner_whose_slots_are_folded_and_deleted(store: FaultyStore) -> None:
    sleeper, other = open_log(store), open_log(store)
    sleeper.own()
    for _ in range(2):
        commit(other)
        other.fold()
    other.truncate(0)
    assert store.size(LOG_LAYOUT.slot_path(sleeper.state.n + 1)) is None
    with pytest.raises(DeposedError):
        sleeper.check_owner()


def test_tm1_times_grow_though_the_clock_stands_still(store: FaultyStore) -> None:
    log = open_log(store, SetClock())
    pairs = [commit(log) for _ in range(5)]
    times = [time for pair in pairs for time in pair]
    assert len(set(times)) == len(times)
    for (_, earlier), (instant, completion) in itertools.pairwise(pairs):
        assert completion > max(earlier, instant)


def test_tm3_a_clock_set_back_by_five_seconds_is_bridged_and_more_is_refused(store: FaultyStore) -> None:
    clock = SetClock()
    log = open_log(store, clock)
    _, before = commit(log)
    clock.now -= 4_000
    _, after = commit(log)
    assert after > before
    clock.now -= 4_000
    with pytest.raises(ClockError):
        commit(log)
    clock.now = NOON
    for instant in log.open_instants:
        log.release(instant)
    assert commit(log)[1] > after


def test_tm1_a_successor_with_a_slow_clock_starts_above_every_time_in_the_log(store: FaultyStore) -> None:
    _, last = commit(open_log(store))
    instant, completion = commit(open_log(store, SetClock(NOON - 3_000)))
    assert last < instant < completion


def test_tm4_an_instant_is_in_a_slot_before_it_is_used_and_the_next_two_are_reserved(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    assert instant in read_state(store, LOG_LAYOUT)[0].reserved
    commit(log, instant)
    reserved = read_state(store, LOG_LAYOUT)[0].reserved
    assert len(reserved) == 2
    assert instant not in reserved


def test_tm4_what_an_older_epoch_reserved_and_did_not_commit_is_dead(store: FaultyStore) -> None:
    first = open_log(store)
    pending = first.begin()
    second = open_log(store)
    second.own()
    assert pending in second.state.dead
    assert pending not in second.state.reserved


def test_tm5_an_unused_reservation_older_than_a_minute_is_renewed(store: FaultyStore) -> None:
    clock = SetClock()
    log = open_log(store, clock)
    first, _ = commit(log)
    clock.now += 61_000
    assert log.age_ms(log.begin()) < 1_000 < 60_000 < log.age_ms(first)


def test_ro2_transactions_commit_in_the_order_of_their_instants(store: FaultyStore) -> None:
    log = open_log(store)
    older, newer = log.begin(), log.begin()
    with pytest.raises(TransactionError, match="older"):
        commit(log, newer)
    with pytest.raises(TransactionError):
        log.begin()
    commit(log, older)
    commit(log, newer)
    assert list(read_state(store, LOG_LAYOUT)[0].commits) == [older, newer]


def test_c4_a_deposed_log_says_so_and_stays_deposed(store: FaultyStore) -> None:
    first, second = open_log(store), open_log(store)
    returned = commit(first)
    commit(second)
    for _ in range(2):
        with pytest.raises(DeposedError, match="took the table over"):
            commit(first, *first.open_instants)
        assert not first.owned
    assert returned[0] in read_state(store, LOG_LAYOUT)[0].commits


def test_c4_an_unknown_outcome_repeats_the_same_bytes_at_the_same_slot(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    slot = log.state.n + 1
    store.after_create = lambda path, outcome: (
        Outcome.UNKNOWN if path == LOG_LAYOUT.slot_path(slot) and outcome is Outcome.CREATED else outcome
    )
    commit(log, instant)
    state = read_state(store, LOG_LAYOUT)[0]
    assert state.n == slot
    assert list(state.commits) == [instant]


def test_c4_a_store_that_never_answers_ends_the_handle_with_an_unknown_outcome(store: FaultyStore) -> None:
    clock = SetClock()
    log = open_log(store, clock)
    instant = log.begin()
    store.before_create = lambda path: Outcome.UNKNOWN if "/slot/" in path else None
    with pytest.raises(OutcomeUnknownError):
        commit(log, instant)
    assert clock.slept
    assert max(clock.slept) <= 1.0
    store.before_create = answers()
    assert not log.owned
    with pytest.raises(OutcomeUnknownError):
        log.begin()


def test_a_full_disk_leaves_the_transaction_open_to_be_committed_later(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()

    def full(path: str) -> Outcome | None:
        raise StoreFullError("full", fix="free space.")

    store.before_create = full
    with pytest.raises(StoreFullError):
        commit(log, instant)
    store.before_create = answers()
    commit(log, instant)
    assert list(read_state(store, LOG_LAYOUT)[0].commits) == [instant]


def test_g4_a_slot_won_below_the_boundary_is_not_ours(store: FaultyStore) -> None:
    """Slots were truncated while we slept; our create succeeds at a number that was folded away."""
    sleeper = open_log(store)
    sleeper.own()
    other = open_log(store)
    for _ in range(3):
        commit(other)
    other.fold()
    store.delete([LOG_LAYOUT.slot_path(n) for n in range(other.state.n + 1)])
    with pytest.raises(DeposedError):
        commit(sleeper)
    assert open_log(store).state.commits == other.state.commits


def test_g4_a_slot_won_at_the_boundary_itself_is_not_ours(store: FaultyStore) -> None:
    """The one slot that was won while we slept is the one that the fold ends with."""
    sleeper, asking = open_log(store), open_log(store)
    sleeper.own()
    other = open_log(store)
    asking.own()
    assert other.own()
    taken = [sleeper.state.n + 1, asking.state.n + 1]
    assert other.state.n == taken[1]
    other.fold()
    store.delete([LOG_LAYOUT.slot_path(n) for n in taken])
    with pytest.raises(DeposedError):
        asking.check_owner()
    with pytest.raises(DeposedError):
        asking.begin()


def test_g4_who_wins_the_number_that_the_boundary_names_has_won_nothing(store: FaultyStore) -> None:
    sleeper = open_log(store)
    sleeper.own()
    other = open_log(store)
    other.own()
    other.fold()
    assert other.state.n == other.state.folded == sleeper.state.n + 1
    store.delete([LOG_LAYOUT.slot_path(other.state.n)])
    with pytest.raises(DeposedError):
        commit(sleeper)
    assert open_log(store).state.commits == {}


def test_t6_a_successor_publishes_what_was_won_and_links_it_from_the_renamed_stage(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    file = stage(store, log, "a")

    def crash(path: str) -> Outcome | None:
        if path.startswith("done/"):
            raise KeyboardInterrupt
        return None

    store.link_all = lambda names: (_ for _ in ()).throw(KeyboardInterrupt())  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        log.commit(instant, [file], lambda completion: [("done/x", b"x")])
    del store.link_all
    assert store.size("data/a") is None
    open_log(store).own()
    assert store.get("data/a").to_pybytes() == b"rows"
    assert store.get("done/x").to_pybytes() == b"x"


def test_w2_a_deposed_leader_whose_slot_was_won_still_returns_it_as_committed(store: FaultyStore) -> None:
    """The successor renamed the stage away between our slot and our links, and completes the slot itself."""
    log = open_log(store)
    instant = log.begin()
    file = stage(store, log, "a")

    def successor(path: str, outcome: Outcome) -> Outcome:
        if path == LOG_LAYOUT.slot_path(2):
            store.after_create = lambda path, outcome: outcome
            open_log(store).own()
        return outcome

    store.after_create = successor
    completion = log.commit(instant, [file], lambda completion: [("done/x", b"x")])
    assert read_state(store, LOG_LAYOUT)[0].commits == {instant: completion}
    assert store.get("data/a").to_pybytes() == b"rows"


def test_a_fold_holds_the_whole_state_and_is_read_instead_of_its_slots(store: FaultyStore) -> None:
    log = open_log(store)
    while not log.fold_is_due():
        commit(log)
    assert log.state.n == FOLD_EVERY - 1
    log.fold()
    whole, slots = read_state(store, LOG_LAYOUT, folds=False)
    folded, after = read_state(store, LOG_LAYOUT)
    assert after == []
    assert log.unfolded == ()
    assert len(slots) == FOLD_EVERY
    assert encode_fold(folded) == encode_fold(whole)
    commit(log)
    assert len(read_state(store, LOG_LAYOUT)[1]) == 1


def test_g1_staged_names_go_only_when_their_links_are_synced(store: FaultyStore) -> None:
    log = open_log(store)
    instant = log.begin()
    file = stage(store, log, "a")
    log.commit(instant, [file], lambda completion: [])
    assert store.size(file.stage) == 4
    log.fold()
    assert store.size(file.stage) is None
    assert store.get("data/a").to_pybytes() == b"rows"


def test_the_library_does_not_fence_a_cluster_unless_told_so(store: FaultyStore) -> None:
    open_log(store, owner=CLUSTER).own()
    with pytest.raises(TableOwnedError, match="localhost:7070"):
        open_log(store).own()
    assert read_state(store, LOG_LAYOUT)[0].owner == CLUSTER
    open_log(store, take_over=True).own()
    assert read_state(store, LOG_LAYOUT)[0].owner == LIBRARY


def test_d1_names_are_in_a_slot_before_they_may_be_deleted(store: FaultyStore) -> None:
    log = open_log(store)
    dead = log.begin()
    log.abandon(dead)
    log.win_dead({dead: ["x"]}, [])
    assert read_state(store, LOG_LAYOUT)[0].dead == {dead: ["x"]}
    log.win_dead({}, [dead])
    assert read_state(store, LOG_LAYOUT)[0].dead == {}


@pytest.mark.parametrize("position", [0, 20, 90, -2])
def test_a_flipped_bit_in_a_slot_is_seen(store: FaultyStore, tmp_path: Path, position: int) -> None:
    commit(open_log(store))
    path = tmp_path / "table" / LOG_LAYOUT.slot_path(2)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises((CorruptFileError, UnsupportedTableError)):
        read_state(store, LOG_LAYOUT)


def test_a_missing_slot_and_a_broken_chain_are_seen(store: FaultyStore) -> None:
    """Rule C2: each slot names the one that it was decided on."""
    log = open_log(store)
    commit(log)
    commit(log)
    store.delete([LOG_LAYOUT.slot_path(2)])
    with pytest.raises(CorruptFileError, match="gap"):
        read_state(store, LOG_LAYOUT)
    for n, before in ((1, GENESIS_HASH), (0, "f" * 64)):
        forged = Slot(n, 9, "0" * 32, before, Fence(owner=LIBRARY, reserved=[]))
        with pytest.raises(CorruptFileError, match="chain"):
            LogState(LOG_LAYOUT).apply(forged, "")


def test_a_slot_of_an_unknown_kind_is_refused_not_skipped() -> None:
    data = Slot(3, 1, "0" * 32, "0" * 64, Dead(named={}, swept=[])).encode()
    _, _, payload = data.partition(b"\n")
    content = json.loads(payload) | {"kind": "REPARTITION"}
    with pytest.raises(UnsupportedTableError, match="REPARTITION"):
        decode_slot(seal(content), LOG_LAYOUT, 3)


def test_four_logs_that_fence_at_once_leave_one_chain(store: FaultyStore) -> None:
    logs = [open_log(store) for _ in range(4)]
    for log in logs:
        log.own()
    commit(logs[-1])
    for log in logs[:-1]:
        with pytest.raises(DeposedError):
            commit(log)
    assert read_state(store, LOG_LAYOUT)[0].epoch == 4
