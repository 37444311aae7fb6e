"""The checker of exactly-once finds each anomaly in forged logs, and nothing in right ones."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.committed_log import ENTRIES, independent, open_bytes, ours, stray_files
from support.exactly_once import Report, assert_exactly_once, check_log, check_merged
from support.journal import Attempt, History, Journal, read_journal
from support.workload import DELETE, LATER, SCHEMA, UPSERT, Workload

EVENT_TIME, COMMIT_TIME = Workload(event_time=True), Workload(event_time=False)
BOTH = pytest.mark.parametrize("workload", [EVENT_TIME, COMMIT_TIME], ids=["event time", "commit time"])
LAST = 5000
CUTS = (0, 700, 1900, 1950, 4100, LAST)
SECOND_FROM = 1900
Entry = dict[str, Any]


def histories() -> list[History]:
    """Two producers; the second had two processes, of which the first died when 2300 were sent and 1900 committed."""
    one = History("one", [Attempt(1, 0, LAST)], acked=LAST)
    two = History("two", [Attempt(1, 0, 2300), Attempt(2, SECOND_FROM, LAST)], acked=LAST)
    return [one, two]


def attempt_of(producer: str, number: int) -> int:
    return 2 if producer == "two" and number > SECOND_FROM else 1


def planned(workload: Workload, producer: str, first: int, last: int) -> list[Entry]:
    rows: list[Entry] = []
    for attempt in (1, 2):
        mine = workload.rows(producer, first, last, attempt).to_pylist()
        rows += [row for row in mine if attempt_of(producer, row["number"]) == attempt]
    return rows


@cache
def log_of(workload: Workload, *, drop: bool = True) -> Sequence[Entry]:
    """What a right cluster leaves: five checkpoints, one file per partition, rows in a first block and deletes in a second."""
    found: list[Entry] = []
    for rank, (before, until) in enumerate(itertools.pairwise(CUTS)):
        rows = [row for producer in ("one", "two") for row in planned(workload, producer, before + 1, until)]
        if drop:
            best: dict[str, Entry] = {}
            for row in rows:
                order = "ts" if workload.event_time else "number"
                if row["id"] not in best or best[row["id"]][order] < row[order]:
                    best[row["id"]] = row
            rows = [row for row in rows if best[row["id"]] is row]
        for position, row in enumerate(rows):
            deleted = row.pop("op") == DELETE
            if deleted:
                row |= {"producer": None, "number": None, "attempt": None, "note": None}
                row["ts"] = row["ts"] if workload.event_time else None
            place = {"instant": f"i{rank}", "rank": rank, "file_id": row["part"], "version": 1, "block": int(deleted)}
            found.append({**place, "position": position, "deleted": deleted, **row})
    return found


def table_of(entries: Sequence[Entry]) -> pa.Table:
    return pa.Table.from_pylist(list(entries), ENTRIES)


def check(entries: Sequence[Entry], workload: Workload, *, drop: bool = True, acked: int = LAST) -> Report:
    told = histories()
    for history in told:
        history.acked = acked
    return check_log(table_of(entries), told, workload, drop_beaten=drop)


def pick(entries: Sequence[Entry], **wanted: Any) -> Entry:
    """An entry in the middle of those that fit; ``kind`` is how its key begins."""
    kind = wanted.pop("kind", "")
    fits = [e for e in entries if e["id"].startswith(kind) and all(e[name] == value for name, value in wanted.items())]
    return fits[len(fits) // 2]


def test_the_workload_does_what_it_says() -> None:
    for workload in (EVENT_TIME, COMMIT_TIME):
        rows = workload.rows("p", 1, 20_000, 3).to_pylist()
        once = [row for row in rows if row["id"].startswith("once")]
        assert len(once) == len({row["id"] for row in once}) == 10_000
        assert len({row["ts"] for row in rows}) == len(rows)
        deletes = [row for row in rows if row["op"] == DELETE]
        assert len(deletes) > 1500
        gone = [row for row in deletes if row["id"].startswith("gone")]
        assert len({row["id"] for row in gone}) == len(gone), "a delete is known by its key"
        upserted = {row["id"]: row["number"] for row in rows if row["op"] == UPSERT and row["id"].startswith("gone")}
        assert {row["number"] - upserted[row["id"]] for row in gone} == {2, LATER}
        assert any(a["id"] == b["id"] and a["ts"] > b["ts"] for a, b in zip(rows, rows[100:], strict=False)) or any(
            row["ts"] < 2 * row["number"] for row in rows
        )
        assert {row["part"] for row in rows} == {"p0", "p1", "p2", "p3"}
        assert (len(gone) < len(deletes)) == workload.event_time, "hot keys are deleted where ts tells the deletes apart"
    assert EVENT_TIME.rows("p", 7, 9, 1).to_pylist() == EVENT_TIME.rows("p", 1, 20, 1).slice(6, 3).to_pylist()
    assert DELETE not in Workload(deletes=False).rows("p", 1, 10_000, 1)["op"].to_pylist()


@BOTH
@pytest.mark.parametrize("drop", [True, False])
def test_a_right_log_passes(workload: Workload, drop: bool) -> None:
    report = check(log_of(workload, drop=drop), workload, drop=drop)
    assert not report.anomalies, str(report)
    assert (report.dropped > 500) == drop
    assert report.entries + report.dropped == 2 * LAST


@pytest.mark.slow
@BOTH
def test_an_unacknowledged_end_may_be_missing_and_an_acknowledged_one_may_not(workload: Workload) -> None:
    entries = [entry for entry in log_of(workload) if entry["rank"] < 4]
    assert not check(entries, workload, acked=CUTS[4]).anomalies
    assert check(entries, workload).kinds["lost"] > 100


@BOTH
@pytest.mark.parametrize("kind", ["once", "hot", "gone"])
def test_a_lost_row_is_found(workload: Workload, kind: str) -> None:
    entries = log_of(workload)
    gone = pick(entries, kind=kind, rank=3, deleted=False)
    report = check([entry for entry in entries if entry is not gone], workload)
    assert ("lost", gone["producer"], gone["number"]) in [(a.kind, a.producer, a.number) for a in report.anomalies]
    assert all(gone["id"] in a.detail for a in report.anomalies), "those that it beat in its flush have no excuse any more"


@BOTH
def test_a_lost_row_below_one_that_is_there_is_found_without_any_acknowledgement(workload: Workload) -> None:
    entries = log_of(workload)
    gone = pick(entries, kind="once", rank=1, deleted=False)
    assert check([entry for entry in entries if entry is not gone], workload, acked=0).kinds == {"lost": 1}


@BOTH
def test_nothing_excuses_rows_of_which_none_is_there(workload: Workload) -> None:
    assert check([], workload).kinds == {"lost": 2 * LAST}


@BOTH
def test_a_lost_delete_is_found(workload: Workload) -> None:
    entries = log_of(workload)
    gone = pick(entries, kind="gone", rank=4, deleted=True)
    assert check([entry for entry in entries if entry is not gone], workload).kinds == {"lost": 1}


@BOTH
def test_a_row_that_only_another_flush_beats_is_lost(workload: Workload) -> None:
    """The hot keys are written in each instant: absence in one is not excused by the winner in the next."""
    entries = log_of(workload)
    gone = pick(entries, kind="hot", rank=1, deleted=False)
    assert any(entry["id"] == gone["id"] and entry["rank"] > 1 for entry in entries)
    report = check([entry for entry in entries if entry is not gone], workload)
    assert ("lost", gone["number"]) in [(a.kind, a.number) for a in report.anomalies]


@BOTH
def test_any_absence_is_found_where_nothing_is_dropped(workload: Workload) -> None:
    assert check(log_of(workload, drop=True), workload, drop=False).kinds["lost"] > 500


@BOTH
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("where", ["same file", "later instant"])
def test_a_doubled_entry_is_found(workload: Workload, where: str, deleted: bool) -> None:
    entries = log_of(workload)
    old = pick(entries, kind="gone", rank=4, deleted=deleted)
    place = {"position": 10**6} if where == "same file" else {"rank": 5, "instant": "i5"}
    report = check([*entries, {**old, **place}], workload)
    assert report.kinds["doubled"] == 1
    assert set(report.kinds) <= {"doubled", "swapped"}


@BOTH
def test_a_swap_of_a_key_between_instants_is_found(workload: Workload) -> None:
    entries = log_of(workload)
    first = pick(entries, kind="hot", rank=1, deleted=False)
    second = next(e for e in entries if e["id"] == first["id"] and e["rank"] > 1 and not e["deleted"])
    place = ("instant", "rank", "position")
    swapped = [e for e in entries if e not in (first, second)]
    swapped += [{**first, **{n: second[n] for n in place}}, {**second, **{n: first[n] for n in place}}]
    assert check(swapped, workload).kinds["swapped"] >= 1


def test_a_swap_inside_a_block_is_found() -> None:
    entries = log_of(COMMIT_TIME, drop=False)
    first = pick(entries, kind="hot", rank=3, deleted=False)
    second = next(e for e in entries if e["id"] == first["id"] and e["rank"] == 3 and e["number"] > first["number"])
    swapped = [e for e in entries if e not in (first, second)]
    swapped += [{**first, "position": second["position"]}, {**second, "position": first["position"]}]
    assert check(swapped, COMMIT_TIME, drop=False).kinds["swapped"] >= 1


@BOTH
def test_a_row_that_came_an_instant_too_late_is_found(workload: Workload) -> None:
    """The committed offset passed over it: had the next checkpoint failed, it would be lost."""
    entries = log_of(workload)
    late = pick(entries, kind="once", rank=1, deleted=False)
    assert check([e for e in entries if e is not late] + [{**late, "rank": 3, "instant": "i3"}], workload).kinds["swapped"] == 1


@BOTH
def test_a_ghost_of_an_aborted_checkpoint_is_found(workload: Workload) -> None:
    """The first process sent 1950, the second was told of 1900 and sent 1950 again; the first one's row appears."""
    entries = log_of(workload)
    real = pick(entries, kind="once", rank=2, producer="two")
    aborted = {**real, "attempt": 1, "note": f"two/{real['number']}/1"}
    assert check([aborted if e is real else e for e in entries], workload).kinds == {"ghost": 1}
    report = check([*entries, {**aborted, "file_id": "other"}], workload)
    assert (report.kinds["ghost"], report.kinds["doubled"]) == (1, 1)


@pytest.mark.slow
@BOTH
def test_what_nobody_sent_is_found(workload: Workload) -> None:
    entries = log_of(workload)
    row = pick(entries, kind="once", rank=2, producer="one")
    strange: list[Entry] = [
        {**row, "number": LAST + 1, "note": f"one/{LAST + 1}/1"},
        {**row, "producer": "three"},
        {**row, "attempt": 7},
        {**pick(entries, deleted=True), "id": "gone-one-3"},
    ]
    for entry in strange:
        assert check([*entries, entry], workload).kinds["ghost"] >= 1


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    ("column", "value"), [("part", "p9"), ("ts", 3), ("id", "once-one-1"), ("note", "one/1/1"), ("note", None)]
)
def test_a_row_whose_columns_come_from_another_is_found(workload: Workload, column: str, value: Any) -> None:
    entries = log_of(workload)
    row = pick(entries, kind="once", rank=2, producer="one")
    report = check([{**row, column: value} if e is row else e for e in entries], workload)
    assert report.kinds["ghost"] == 1


def merged_of(entries: Sequence[Entry], workload: Workload) -> list[Entry]:
    best: dict[str, Entry] = {}
    for entry in entries:
        rank = entry["ts"] if workload.event_time else 0
        if entry["id"] not in best or rank >= (best[entry["id"]]["ts"] if workload.event_time else 0):
            best[entry["id"]] = entry
    return [{name: entry[name] for name in SCHEMA.names} for entry in best.values() if not entry["deleted"]]


@pytest.mark.slow
@BOTH
def test_merged_rows_are_compared_with_what_the_history_implies(workload: Workload) -> None:
    entries = log_of(workload)
    right = merged_of(entries, workload)

    def found(rows: Sequence[Entry]) -> int:
        return len(check_merged(pa.Table.from_pylist(list(rows), SCHEMA), table_of(entries), histories(), workload))

    assert found(right) == 0
    assert found(right[1:]) == 1
    assert found([*right, right[5]]) == 1
    resent = next(row for row in right if row["attempt"] == 2)
    assert found([{**row, "attempt": 1, "note": f"two/{row['number']}/1"} if row is resent else row for row in right]) == 2
    deleted = next(e for e in entries if e["deleted"])
    back = {**resent, "id": deleted["id"]}
    assert found([*right, back]) == 1


@pytest.mark.slow
@BOTH
def test_real_files_are_read_alike_by_both_readers_and_judged(workload: Workload, tmp_path: Path) -> None:
    url, told = write_with_the_library(tmp_path, workload)
    store = open_bytes(url)
    entries = independent(store)
    assert entries.equals(ours(store))
    report = assert_exactly_once(url, told, workload)
    assert report.entries == entries.num_rows
    assert report.merged > 600
    assert {True, False} == set(entries["deleted"].to_pylist())


@pytest.mark.slow
def test_a_data_file_that_no_commit_names_is_found(tmp_path: Path) -> None:
    """Fact HF1."""
    url, told = write_with_the_library(tmp_path, EVENT_TIME)
    store = open_bytes(url)
    assert stray_files(store) == []
    [named, *_] = sorted((tmp_path / "table").glob("p0/.*.log.*"))
    stray = named.with_name(named.name.replace(".log.1_", ".log.9_"))
    stray.write_bytes(named.read_bytes())
    assert stray_files(store) == [f"p0/{stray.name}"]
    with pytest.raises(AssertionError, match="named by no commit"):
        assert_exactly_once(url, told, EVENT_TIME)


@pytest.mark.slow
def test_a_missing_commit_and_a_repeated_one_are_found_in_real_files(tmp_path: Path) -> None:
    url, told = write_with_the_library(tmp_path, COMMIT_TIME)
    again = [replace(told[0], acked=1200, attempts=[Attempt(1, 0, 1200)])]
    with pytest.raises(AssertionError, match="'lost': "):
        assert_exactly_once(url, again, COMMIT_TIME)
    append(hudi.open_table(url), COMMIT_TIME, 501, 600)
    with pytest.raises(AssertionError, match="'doubled': "):
        assert_exactly_once(url, told, COMMIT_TIME)


def write_with_the_library(folder: Path, workload: Workload) -> tuple[str, list[History]]:
    url = f"file://{folder}/table"
    ordering = "ts" if workload.event_time else None
    table = hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", ordering=ordering, buckets=2)
    for first in range(1, 1000, 100):
        append(table, workload, first, first + 99)
    return url, [History("one", [Attempt(1, 0, 1000)], acked=1000)]


def append(table: Any, workload: Workload, first: int, last: int) -> None:
    """One checkpoint: of each key what wins in it, then one transaction."""
    rows = workload.rows("one", first, last, 1).to_pylist()
    order = "ts" if workload.event_time else "number"
    best = {row["id"]: row for row in sorted(rows, key=lambda row: row[order])}
    rows = [row for row in rows if best[row["id"]] is row]
    with table.transaction() as transaction:
        for op, act in ((UPSERT, transaction.upsert), (DELETE, transaction.delete)):
            act(pa.Table.from_pylist([{n: v for n, v in row.items() if n != "op"} for row in rows if row["op"] == op], SCHEMA))


def test_a_journal_keeps_attempts_and_the_highest_safe_acknowledgement(tmp_path: Path) -> None:
    path = tmp_path / "p"
    assert read_journal(path, "p") == History("p")
    journal = Journal(path)
    journal.opened(1, 0)
    journal.sent(10)
    journal.acked(9, "received")
    journal.acked(5, "durable")
    journal.close()
    journal = Journal(path)
    journal.opened(2, 7)
    journal.sent(20)
    journal.acked(6, "queryable")
    journal.close()
    history = read_journal(path, "p")
    assert history == History("p", [Attempt(1, 0, 10), Attempt(2, 7, 20)], acked=6)
    assert history.known_committed == 7


@pytest.mark.slow
def test_random_small_damage_is_always_found() -> None:
    """Whatever single entry is dropped, doubled, or given to another instant: there is an anomaly."""
    draw = random.Random(7)
    entries = log_of(EVENT_TIME)
    damages: list[Callable[[Entry], list[Entry]]] = [
        lambda entry: [],
        lambda entry: [entry, {**entry, "position": 10**6 + entry["position"]}],
        lambda entry: [{**entry, "rank": 9, "instant": "i9"}],
    ]
    for _ in range(12):
        victim, damage = draw.choice([e for e in entries if e["rank"] < 4]), draw.choice(damages)
        wrong = [after for entry in entries for after in (damage(entry) if entry is victim else [entry])]
        assert check(wrong, EVENT_TIME).anomalies, victim


def test_commits_that_were_archived_are_read_by_both_readers(tmp_path: Path) -> None:
    """The judge looked for them in a folder that is not there, and ended every longer run with a KeyError."""
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    url = f"file://{tmp_path}/table"
    table = hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", ordering="ts", buckets=1)
    table.configure(few)
    for number in range(1, 9):
        table.upsert(EVENT_TIME.rows("one", number, number, 1).drop_columns("op"))
        if number == 4:
            table.compact()
    assert table.archive().instants, "something is in the history"
    store = open_bytes(url)
    entries = independent(store)
    assert entries.num_rows >= 4
    assert entries.equals(ours(store))
