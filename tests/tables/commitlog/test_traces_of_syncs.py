"""Traces on paper of the log in which a sync fails, or power is cut between a name and its content."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import OutcomeUnknownError, ReopenTable, SyncFailedError
from headgate_tables.storage.store import Outcome
from support.commit_logs import commit, open_log, unknown
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, system


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    made = FaultyStore(tmp_path / "table")
    create_log(made, LOG_LAYOUT, system(), {"answer": 42}, [("props", b"a=b")])
    return made


def test_g1_before_a_fold_all_names_and_derived_bytes_are_synced_and_only_then_staged_names_go(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(store)
    instant = log.begin()
    staged = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/file"
    store.stage([(staged, [b"rows"])])
    log.commit(instant, [DataFile("data/p/file", 4, "", staged)], lambda completion: [("done/x", b"x"), ("done/empty", b"")])
    steps: list[tuple[str, set[str]]] = []
    sync, delete = store.sync, store.delete

    def noted_sync(paths: Sequence[str], folders: Sequence[str]) -> None:
        steps.extend([("content", set(paths)), ("folders", set(folders))])
        sync(paths, folders)

    def noted_delete(paths: Sequence[str]) -> None:
        steps.append(("delete", set(paths)))
        delete(steps[-1][1])

    monkeypatch.setattr(store, "sync", noted_sync)
    monkeypatch.setattr(store, "delete", noted_delete)
    log.fold()
    assert [step for step, _ in steps] == ["content", "folders", "delete"]
    assert steps[0][1] == {"props", "done/x"}
    assert {"data/p", "done"} <= steps[1][1]
    assert steps[2][1] == {staged}


def test_h14_after_a_failed_sync_nothing_is_folded_by_this_handle(store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(store)
    commit(log)

    def fails(paths: Sequence[str], folders: Sequence[str]) -> None:
        raise SyncFailedError("fsync failed", fix="Check the disk.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "sync", fails)
        with pytest.raises(SyncFailedError, match="fsync failed"):
            log.fold()
    for attempt in (log.fold, log.begin):
        with pytest.raises(ReopenTable, match="fsync failed"):
            attempt()
    assert store.list_folder(LOG_LAYOUT.folds).files == []


@pytest.mark.parametrize("left", [0, 7])
def test_p2_a_derived_file_that_a_power_cut_left_torn_is_put_right(store: FaultyStore, tmp_path: Path, left: int) -> None:
    """Derived files are not synced: after a power cut a name may be there without its bytes, or with a part of them."""
    instant = commit(open_log(store))
    path = tmp_path / "table/done" / instant
    path.write_bytes(path.read_bytes()[:left])
    open_log(store).begin()
    assert path.read_bytes() == instant.encode()


def test_the_properties_of_a_new_table_are_durable_when_it_is_created(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may rewrite them later, so no slot could tell torn ones from theirs."""
    durable: dict[str, bool] = {}
    real = FaultyStore.create

    def create(
        self: FaultyStore, path: str, content: Sequence[bytes], *, durable: bool, seen: dict[str, bool] = durable
    ) -> Outcome:
        seen[path] = durable
        return real(self, path, content, durable=durable)

    monkeypatch.setattr(FaultyStore, "create", create)
    other = FaultyStore(Path(store._root).parent / "other")
    create_log(other, LOG_LAYOUT, system(), {}, [("props", b"a=b")])
    assert durable == {LOG_LAYOUT.slot_path(0): True, "props": True}


@pytest.mark.parametrize("step", ["create", "replace", "link_all", "rename_folder"])
def test_h14_after_a_failed_sync_of_anything_that_a_handle_writes_it_does_nothing_more(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Also of a commit that is decided: "its outcome is unknown" would let a coordinator go on with another handle."""
    log = open_log(store)
    instant = log.begin()
    staged = f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/{instant}_file"
    store.stage([(staged, [b"rows"])])
    if step == "rename_folder":
        store.before_create = unknown(10**6, "done/")
        with pytest.raises(OutcomeUnknownError):
            log.commit(instant, [DataFile("p/file", 4, "", staged)], lambda completion: [(f"done/{instant}", b"")])
        store.before_create = lambda path: None
        log = open_log(store)
        work: Callable[[], object] = log.own
    elif step == "replace":
        (Path(store.url.removeprefix("file://")) / "done").mkdir()
        store.create(f"done/{instant}", [b"to"], durable=True)
        work = partial(log.commit, instant, [], lambda completion: [(f"done/{instant}", b"torn")])
    else:
        work = partial(log.commit, instant, [DataFile("p/file", 4, "", staged)], lambda completion: [(f"done/{instant}", b"")])

    real = getattr(store, step)

    def fails(*arguments: Any, **named: Any) -> Any:
        if step == "create" and "/slot/" in arguments[0]:
            return real(*arguments, **named)
        raise SyncFailedError("fsync failed", fix="Check the disk.")

    monkeypatch.setattr(store, step, fails)
    with pytest.raises(SyncFailedError, match="fsync failed"):
        work()
    monkeypatch.undo()
    for attempt in (log.fold, log.begin, log.own):
        with pytest.raises(SyncFailedError, match="fsync failed"):
            attempt()


def test_h14_a_table_that_could_not_be_made_durable_is_not_said_to_be_there_perhaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FaultyStore(tmp_path / "new")
    made.before_create = lambda path: None if "/slot/" in path else _not_synced()
    with pytest.raises(SyncFailedError, match="fsync failed"):
        create_log(made, LOG_LAYOUT, system(), {}, [("props", b"a=b")])


def _not_synced() -> Outcome:
    raise SyncFailedError("fsync failed", fix="Check the disk.")
