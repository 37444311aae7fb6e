"""The checker of exactly-once judges rows that their slice refused, and that came later through a channel of their own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.committed_log import ENTRIES
from support.exactly_once import Report, check_log, check_merged
from support.journal import Attempt, History, Journal, read_journal
from support.workload import DELETE, SCHEMA, Workload

WORKLOAD = Workload()
LAST, CUT = 1000, 500
REFUSED = range(101, 401)
"""Numbers while a slice took no rows."""
Entry = dict[str, Any]


def is_kept(row: Entry) -> bool:
    return row["number"] in REFUSED and row["part"] in ("p1", "p2")


def rows() -> list[Entry]:
    found: list[Entry] = WORKLOAD.rows("one", 1, LAST, 1).to_pylist()
    return found


def history() -> History:
    kept = {row["number"]: 1 for row in rows() if is_kept(row)}
    return History("one", [Attempt(1, 0, LAST)], acked=LAST, kept=kept, kept_acked=len(kept))


def entries() -> list[Entry]:
    """What a right cluster leaves: two checkpoints, without dropping; what was kept is at the end of the second one."""
    found = []
    for row in sorted(rows(), key=is_kept):
        rank = int(is_kept(row) or row["number"] > CUT)
        deleted = row.pop("op") == DELETE
        place = {"instant": f"i{rank}", "rank": rank, "file_id": row["part"], "version": 1, "block": int(deleted)}
        found.append({**place, "position": len(found), "deleted": deleted, **row})
    return found


def check(log: Sequence[Entry], told: History) -> Report:
    """Entries with a delete know neither producer nor number."""
    hidden = dict.fromkeys(("producer", "number", "attempt", "note"))
    table = pa.Table.from_pylist([entry | hidden if entry["deleted"] else entry for entry in log], ENTRIES)
    return check_log(table, [told], WORKLOAD, drop_beaten=False)


def one_kept(log: Sequence[Entry]) -> Entry:
    return [entry for entry in log if is_kept(entry) and entry["id"].startswith("once")][20]


def test_kept_rows_that_come_later_in_their_order_are_right() -> None:
    report = check(entries(), history())
    assert not report.anomalies, str(report)
    assert report.entries == LAST


def test_the_same_rows_are_late_if_nobody_kept_them() -> None:
    assert check(entries(), replace(history(), kept={}, kept_acked=0)).kinds["swapped"] > 0


def test_a_kept_row_that_never_came_is_lost() -> None:
    log = entries()
    gone = one_kept(log)
    report = check([entry for entry in log if entry is not gone], history())
    assert [(found.kind, found.number) for found in report.anomalies] == [("lost", gone["number"])]


def test_a_kept_row_below_one_that_is_there_is_lost_without_any_acknowledgement() -> None:
    log = entries()
    gone = one_kept(log)
    report = check([entry for entry in log if entry is not gone], replace(history(), kept_acked=0))
    assert report.kinds == {"lost": 1}


def test_kept_rows_that_nobody_acknowledged_may_be_missing_all_together() -> None:
    log = [entry for entry in entries() if not is_kept(entry)]
    assert not check(log, replace(history(), kept_acked=0)).anomalies
    assert check(log, history()).kinds == {"lost": len(history().kept)}


def test_a_kept_row_that_was_taken_at_first_and_came_again_is_doubled() -> None:
    log = entries()
    twice = one_kept(log)
    report = check([*log, twice | {"instant": "i0", "rank": 0}], history())
    assert ("doubled", twice["number"]) in [(found.kind, found.number) for found in report.anomalies]


def test_kept_rows_of_a_key_in_another_order_are_swapped() -> None:
    log = entries()
    hot = [entry for entry in log if is_kept(entry) and entry["id"].startswith("hot") and not entry["deleted"]]
    first, second = next((a, b) for a in hot for b in hot if a["id"] == b["id"] and a["number"] < b["number"])
    first["position"], second["position"] = second["position"], first["position"]
    log.sort(key=lambda entry: (entry["rank"], entry["position"]))
    assert check(log, history()).kinds["swapped"] > 0


def test_merged_rows_are_expected_to_have_what_was_kept() -> None:
    newest: dict[str, Entry] = {}
    for row in rows():
        if row["id"] not in newest or newest[row["id"]]["ts"] < row["ts"]:
            newest[row["id"]] = row
    shown = [row for row in newest.values() if row["op"] != DELETE]
    log = pa.Table.from_pylist([entry for entry in entries() if not entry["deleted"]], ENTRIES)
    gone = next(row for row in shown if is_kept(row))
    for merged, found in ((shown, 0), ([row for row in shown if row is not gone], 1)):
        assert len(check_merged(pa.Table.from_pylist(merged, SCHEMA), log, [history()], WORKLOAD)) == found


@pytest.mark.parametrize(("committed", "kept"), [(60, {7: 1, 55: 1}), (54, {7: 1})])
def test_what_was_kept_above_the_committed_offset_is_sent_again_in_its_place(
    committed: int, kept: dict[int, int], tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "one.journal")
    journal.opened(1, 0)
    journal.sent(60)
    journal.kept([7, 55])
    journal.opened(2, committed)
    journal.kept([70])
    journal.kept_acked(1)
    journal.close()
    found = read_journal(tmp_path / "one.journal", "one")
    assert found.kept == kept | {70: 2}
    assert [*found.kept] == [*kept, 70]
    assert found.kept_acked == 1
