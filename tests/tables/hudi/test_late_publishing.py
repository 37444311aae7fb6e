"""Hazard H8: an owner that slept for hours between winning a slot and publishing it brings back nothing that was archived."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.claim import OWNERSHIP_TRUSTED_S, Claim
from headgate_tables.commitlog.dead_names import DeadNames
from headgate_tables.errors import DeposedError, OutcomeUnknownError, StoreUnavailableError
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import Outcome
from support.handles import open_on
from support.systems import FaultyStore, SetClock, system
from support.tables import SHORT, by_hudi_rs, create, notes, rows

HOURS_MS = 7_200_000


class InPlaceStore(FaultyStore):
    """As an object store: data files are created under their final names."""

    stages = False  # type: ignore[misc]


STORES = pytest.mark.parametrize("store", [FaultyStore, InPlaceStore], ids=["staged", "in place"])


def opened(tmp_path: Path, clock: SetClock, store: type[FaultyStore]) -> hudi.Table:
    return open_on(store(tmp_path / "table"), system(clock))


def overtake(tmp_path: Path, clock: SetClock, store: type[FaultyStore]) -> None:
    """Hours go by, and another process publishes, compacts and archives all that the sleeper has won, and cleans it if a late
    publisher would not notice that by itself: its staged file is gone, but the table's is there.
    """
    clock.now += HOURS_MS
    other = opened(tmp_path, clock, store)
    other.configure(SHORT)
    for number in range(6):
        clock.now += HOURS_MS
        other.upsert(rows((f"later {number}", 1, "x")))
        other.tidy()
    other.compact()
    other.upsert(rows(("last", 1, "x")))
    if not other.stages:
        other.clean()
    other.archive()


def written(tmp_path: Path, clock: SetClock, store: type[FaultyStore]) -> tuple[hudi.Table, dict[str, str]]:
    """The sleeper's table with a commit, and what readers see in the end."""
    create(tmp_path, buckets=1, system=system(clock))
    table = opened(tmp_path, clock, store)
    table.upsert(rows(("first", 1, "x")))
    return table, {"first": "x", "won": "x", "last": "x"} | {f"later {n}": "x" for n in range(6)}


@pytest.mark.slow
@STORES
@pytest.mark.parametrize("at", ["the slot's request", "the slot", "the first file", "the second file"])
def test_h8_a_process_that_slept_after_winning_publishes_nothing_that_was_archived_since(
    tmp_path: Path, store: type[FaultyStore], at: str
) -> None:
    clock = SetClock()
    sleeper, shown = written(tmp_path, clock, store)
    faulty = sleeper._store
    assert isinstance(faulty, FaultyStore)
    transaction = sleeper.transaction()
    transaction.upsert(rows(("won", 1, "x"), part="new"))  # whose metadata file is published before the completed instant
    published: list[str] = []

    def sleep() -> None:
        overtake(tmp_path, clock, store)
        faulty.before_create = published.append

    def decided() -> None:
        if at == "the slot":
            sleep()
        elif at != "the slot's request":
            faulty.after_create = behind(1 if at == "the first file" else 2, sleep)

    if at == "the slot's request":
        faulty.after_create = behind(1, sleep)
    result = transaction.commit(on_durable=decided)
    assert not published
    assert faulty.size(f"{TIMELINE_FOLDER}/{result.instant}.deltacommit.requested") is None
    assert result.instant == transaction.instant, "the commit stands: it must not be sent again"
    assert notes(hudi.open_table(sleeper.url)) == shown
    assert hudi.open_table(sleeper.url).verify().ok
    with pytest.raises(DeposedError):
        sleeper.upsert(rows(("never", 1, "x")))


def behind(files: int, sleep: Callable[[], None]) -> Callable[[str, Outcome], Outcome]:
    """For ``after_create``: when so many files have been put in place, one by one."""
    left = [files]

    def after(path: str, outcome: Outcome) -> Outcome:
        left[0] -= 1
        if left[0] == 0:
            sleep()
        return outcome

    return after


@STORES
def test_h8_a_checkpoint_that_slept_before_its_instant_was_announced_announces_nothing(
    tmp_path: Path, store: type[FaultyStore]
) -> None:
    """The timeline would begin with a pending instant, in front of all that was archived."""
    clock = SetClock()
    sleeper, shown = written(tmp_path, clock, store)
    transaction = sleeper.transaction()
    overtake(tmp_path, clock, store)
    with pytest.raises(DeposedError, match="took the table over"):
        transaction.announce()
    del shown["won"]
    assert notes(hudi.open_table(sleeper.url)) == shown
    assert hudi.open_table(sleeper.url).verify().ok


def test_h8_a_delayed_process_checks_its_ownership_and_continues_and_others_never_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request more in a commit is a request more in every checkpoint."""
    clock = SetClock()
    table, _ = written(tmp_path, clock, FaultyStore)
    asked: list[Claim] = []
    ask = Claim.check_owner
    monkeypatch.setattr(Claim, "check_owner", lambda of: (asked.append(of), ask(of))[1])
    table.upsert(rows(("won", 1, "x")))
    table.compact()
    assert not asked

    def busy() -> None:
        clock.now += round(OWNERSHIP_TRUSTED_S * 1000) + 1

    store = table._store
    assert isinstance(store, FaultyStore)
    transaction = table.transaction()
    transaction.upsert(rows(("last", 1, "x")))
    transaction.commit(on_durable=busy)
    assert len(asked) == 1
    assert notes(hudi.open_table(table.url)) == {"first": "x", "won": "x", "last": "x"}


def test_h8_who_cannot_ask_publishes_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    table, _ = written(tmp_path, clock, FaultyStore)

    def busy(of: Claim) -> None:
        raise StoreUnavailableError("busy", fix="Try again.")

    def late() -> None:
        clock.now += round(OWNERSHIP_TRUSTED_S * 1000) + 1

    transaction = table.transaction()
    transaction.upsert(rows(("won", 1, "x")))
    with monkeypatch.context() as patch:
        patch.setattr(Claim, "check_owner", busy)
        with pytest.raises(OutcomeUnknownError, match="decided the commit for good"):
            transaction.commit(on_durable=late)
    assert notes(hudi.open_table(table.url)) == {"first": "x"}
    opened(tmp_path, clock, FaultyStore).upsert(rows(("last", 1, "x")))
    assert notes(hudi.open_table(table.url)) == {"first": "x", "won": "x", "last": "x"}


# --- what earlier versions have let back ---


def archived(tmp_path: Path) -> tuple[hudi.Table, dict[str, bytes], str]:
    """A table, files of its timeline that were archived, and the instant of one of them that has rows."""
    clock = SetClock()
    create(tmp_path, buckets=1, system=system(clock))
    table = opened(tmp_path, clock, FaultyStore)
    table.configure(SHORT)
    found: dict[str, bytes] = {}
    for number in range(6):
        table.upsert(rows((f"k{number}", 1, "x"), part=f"p{number}"))
        found |= {each.path: table._store.get(each.path).to_pybytes() for each in list_instants(table._store)}
    gone = table.archive().instants
    assert len(gone) > 2
    table.win_offsets({})
    return table, {path: content for path, content in found.items() if path.rpartition("/")[2][:17] in gone}, gone[0]


@pytest.mark.parametrize("states", ["all", "requested", "inflight"])
def test_h8_an_archived_instant_that_came_back_is_named_by_verify_and_removed_by_a_repair(tmp_path: Path, states: str) -> None:
    """Readers show a part of the rows then, and every file is what slots say."""
    table, files, instant = archived(tmp_path)
    shown = notes(table)
    back = {path: content for path, content in files.items() if instant in path and (states == "all" or path.endswith(states))}
    assert back
    for path, content in back.items():
        table._store.create(path, [content], durable=True)
    seen = by_hudi_rs(table.url)
    assert len(seen) < len(shown)
    found = hudi.open_table(table.url).verify().findings
    named = {finding.path: finding.problem for finding in found if "archived, but on the timeline again" in finding.problem}
    assert named.keys() == back.keys()
    assert all("--repair" in problem for problem in named.values())
    repaired = table.repair()
    assert sorted(repaired.removed) == sorted(back)
    assert repaired.put_back == []
    assert repaired.removed[-1].endswith(".deltacommit") is (states == "all"), "the completed file goes last"
    assert notes(hudi.open_table(table.url)) == shown
    assert hudi.open_table(table.url).verify().ok


def test_h8_a_file_that_the_history_does_not_explain_is_named_and_stays(tmp_path: Path) -> None:
    """It completed at another time than the archived instant: somebody else may need it."""
    table, _, instant = archived(tmp_path)
    strange = f"{TIMELINE_FOLDER}/{instant}_{instant[:-1]}9.deltacommit"
    table._store.create(strange, [b"{}"], durable=True)
    assert table.repair().removed == []
    problems = {finding.path: finding.problem for finding in hudi.open_table(table.url).verify().findings}
    assert "move it away" in problems[strange]


def test_h8_a_pending_instant_that_has_data_stays_for_it_would_be_shown(tmp_path: Path) -> None:
    """Hazard H9: the data of an instant that never completed is older than the timeline, once nothing says that it is pending."""
    table, _, instant = archived(tmp_path)
    dead = f"{instant[:-3]}000"
    group = next(group for group in table.file_groups() if group.slices()[0].base)
    requested = f"{TIMELINE_FOLDER}/{dead}.deltacommit.requested"
    table._store.create(requested, [b""], durable=True)
    data = f"{group.partition}/{group.slices()[0].base.rpartition('_')[0]}_{dead}.parquet"
    table._store.create(data, [b"x"], durable=True)
    assert table.repair().removed == []
    table._store.delete([data])
    assert table.repair().removed == [requested]


def test_h8_files_that_an_archiving_has_yet_to_delete_are_not_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    create(tmp_path, buckets=1, system=system(clock))
    table = opened(tmp_path, clock, FaultyStore)
    table.configure(SHORT)
    for number in range(6):
        table.upsert(rows((f"k{number}", 1, "x")))
    monkeypatch.setattr(DeadNames, "delete_given_up", lambda names: None)
    assert table.archive().instants
    assert hudi.open_table(table.url).verify().ok


@STORES
def test_an_overwrite_that_stands_is_no_error_though_another_has_the_table_by_then(
    tmp_path: Path, store: type[FaultyStore]
) -> None:
    clock = SetClock()
    sleeper, _ = written(tmp_path, clock, store)
    transaction = sleeper.transaction()
    transaction.announce_bulk_load("insert_overwrite_table")
    result = transaction.commit(on_durable=lambda: overtake(tmp_path, clock, store))
    assert result.instant == transaction.instant
    assert "first" not in notes(hudi.open_table(sleeper.url))
    with pytest.raises(DeposedError):
        sleeper.upsert(rows(("never", 1, "x")))
