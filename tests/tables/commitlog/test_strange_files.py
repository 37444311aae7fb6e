"""Files in a commit log's folders that no program of ours wrote, or not so: named and refused, or passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.layout import number_name
from headgate_tables.commitlog.slot import hash_of
from headgate_tables.commitlog.tail import read_boundary, read_state
from headgate_tables.errors import CorruptFileError
from support.commit_logs import commit, open_log
from support.log_layout import LOG_LAYOUT
from support.refusals import refused
from support.systems import FaultyStore, SetClock, system

RETIRED_MS = 3_600_000


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(clock), {"answer": 42}, [("props", b"a=b")])
    return made


def put(tmp_path: Path, path: str, content: bytes = b"") -> None:
    file = tmp_path / "table" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["²", "٣", "7", "x", "0" * 21, "1" * 300])
def test_what_has_no_slots_name_is_no_slot(tmp_path: Path, store: FaultyStore, clock: SetClock, name: str) -> None:
    log = open_log(store, clock)
    commit(log)
    for folder in (LOG_LAYOUT.slots, LOG_LAYOUT.folds, LOG_LAYOUT.bounds):
        if len(name.encode()) < 256:
            put(tmp_path, f"{folder}/{name}")
    other = open_log(store, clock)
    assert other.state.n == log.state.n
    commit(other)
    other.fold()
    other.truncate(0)


def test_a_boundary_beyond_the_newest_slot_is_named_before_anything_is_won(
    tmp_path: Path, store: FaultyStore, clock: SetClock
) -> None:
    """No slot up to it counts as won (rule G4): an owner would win them all, one after the other."""
    put(tmp_path, f"{LOG_LAYOUT.bounds}/{number_name(3)}", b"1700000000000")
    log = open_log(store, clock)
    with refused(CorruptFileError, f"{number_name(3)} says that slots up to 3", "restore the commit log"):
        commit(log)
    assert read_state(store, LOG_LAYOUT)[0].n == 0
    (tmp_path / "table" / LOG_LAYOUT.bounds / number_name(3)).unlink()
    commit(open_log(store, clock))


@pytest.mark.parametrize("content", [b"", b"\xff", b"-1", b"soon", b"9" * 5000])
def test_a_damaged_boundary_lets_no_slot_go(tmp_path: Path, store: FaultyStore, clock: SetClock, content: bytes) -> None:
    log = open_log(store, clock)
    for _ in range(3):
        commit(log)
        log.fold()
    for bound in (tmp_path / "table" / LOG_LAYOUT.bounds).iterdir():
        bound.unlink()
        bound.write_bytes(content)
    clock.now += 10 * RETIRED_MS
    before = sorted(store.list_folder(LOG_LAYOUT.slots).files)
    log.truncate(RETIRED_MS)
    assert sorted(store.list_folder(LOG_LAYOUT.slots).files) == before
    assert read_boundary(store, LOG_LAYOUT) == log.state.n


@pytest.mark.parametrize("payload", [b"{", b"\xff", b"[" * 100_000, b"[]", b"1" * 5000, b'{"n": NaN'], ids=range(6))
def test_a_sealed_slot_that_is_no_json_is_damaged(tmp_path: Path, store: FaultyStore, clock: SetClock, payload: bytes) -> None:
    put(tmp_path, LOG_LAYOUT.slot_path(1), b"headgate-slot 1 %s\n%s" % (hash_of(payload).encode(), payload))
    with refused(CorruptFileError, LOG_LAYOUT.slot_path(1), "Restore"):
        open_log(store, clock)


def test_derived_content_that_is_no_base64_is_damage(tmp_path: Path, store: FaultyStore, clock: SetClock) -> None:
    log = open_log(store, clock)
    commit(log)
    slot = tmp_path / "table" / LOG_LAYOUT.slot_path(log.state.n)
    content = json.loads(slot.read_bytes().partition(b"\n")[2])
    content["body"]["publish"][0][1] = "abcde"
    payload = json.dumps(content).encode()
    slot.unlink()
    slot.write_bytes(b"headgate-slot 1 %s\n%s" % (hash_of(payload).encode(), payload))
    with refused(CorruptFileError, f"slot {log.state.n} holds a file whose content is no base64", "Restore"):
        commit(open_log(store, clock))


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere")], ids=["folder", "link"])
def test_a_slots_name_that_something_else_has_taken_is_named(
    tmp_path: Path, store: FaultyStore, clock: SetClock, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "table" / LOG_LAYOUT.slot_path(1))
    with refused(CorruptFileError, f"{number_name(1)} is taken|slot 1 is not there", "Move away|renamed from outside"):
        commit(open_log(store, clock))


def test_a_fold_that_is_listed_and_no_file_is_named(tmp_path: Path, store: FaultyStore, clock: SetClock) -> None:
    log = open_log(store, clock)
    commit(log)
    log.fold()
    fold = tmp_path / "table" / LOG_LAYOUT.folds / number_name(log.state.n)
    fold.unlink()
    fold.symlink_to("nowhere")
    with refused(CorruptFileError, fold.name, "Open the table again"):
        open_log(store, clock)
