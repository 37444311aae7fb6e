"""Read optimised, as of a point, and what changed since one: random histories against a plain model and hudi-rs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables import hudi
from headgate_tables.errors import OptionError
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import FolderListing
from support.counting import CountingStore
from support.handles import open_on
from support.model import Change, Row
from support.readers import query_by_hudi_rs
from support.strategies import effort, new_folder
from support.table_files import data_files, instant_of, kind
from support.tables import SCHEMA, as_text, create, keys, rows
from support.told_history import Event, ToldHistory

IDENTITY = ("part", "id")
BEFORE, AFTER = "20000101000000000", "99991231235959999"

entries = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abcde"),
        "part": st.sampled_from(["p", "q"]),
        "ts": st.integers(0, 5),
        "note": st.text("xyz", max_size=3),
    }
)
changes = st.builds(Change, st.sampled_from(["upsert", "upsert", "delete"]), st.lists(entries, min_size=1, max_size=5))
transactions = st.lists(changes, min_size=1, max_size=2)
steps = st.one_of(transactions, transactions, st.tuples(transactions, transactions), st.just("compact"))


def apply(transaction: hudi.Transaction, told: Sequence[Change]) -> None:
    for change in told:
        table = pa.Table.from_pylist(list(change.rows), SCHEMA)
        if change.kind == "upsert":
            transaction.upsert(table)
        else:
            transaction.delete(table.drop_columns(["note"]))


def tell(table: hudi.Table, step: Any, history: ToldHistory) -> None:
    """Does it and notes it. A pair of transactions is open at once; they get their rows the other way round."""
    if step == "compact":
        compacted = table.compact()
        if compacted.completion:
            history.events.append(Event(compacted.instant, compacted.completion, None))
        return
    told = list(step) if isinstance(step, tuple) else [step]
    opened = [table.transaction() for _ in told]
    for transaction, its in reversed(list(zip(opened, told, strict=True))):
        apply(transaction, its)
    for transaction, its in zip(opened, told, strict=True):
        result = transaction.commit()
        history.events.append(Event(result.instant, result.completion, its))


def found(table: hudi.Table, **query: Any) -> list[Row]:
    names = ["_hoodie_commit_time", *SCHEMA.names]
    return table.scan(meta_columns=True, **query).to_table().select(names).to_pylist()


def of_hudi_rs(table: hudi.Table, **query: Any) -> list[Row]:
    names = ["_hoodie_commit_time", *SCHEMA.names]
    return [{name: row[name] for name in names} for row in query_by_hudi_rs(table.url, **query)]


@pytest.mark.slow
@effort(12)
@given(told=st.lists(steps, min_size=1, max_size=6), by_event_time=st.booleans(), buckets=st.integers(1, 2))
def test_every_point_and_every_range_is_what_the_model_says(told: list[Any], by_event_time: bool, buckets: int) -> None:
    with new_folder() as folder:
        ordering = "ts" if by_event_time else None
        table = create(Path(folder), ordering=ordering, buckets=buckets)
        history = ToldHistory(IDENTITY, ordering, [])
        for step in told:
            tell(table, step, history)
        check_points(hudi.open_table(table.url), history)
        check_ranges(table, history)


def check_points(table: hudi.Table, history: ToldHistory) -> None:
    assert found(table, as_of=BEFORE) == found(table, as_of=BEFORE, mode="read_optimized") == []
    for event in history.events:
        wanted, of_base = as_text(history.as_of(event.completion)), base_rows(table, history, event.completion)
        for point in (event.instant, event.completion, str(int(event.completion) + 1)):
            if any(point in (other.instant, other.completion) for other in history.events if other is not event):
                continue  # the millisecond after this one is another's
            assert as_text(found(table, as_of=point)) == wanted, point
            assert as_text(found(table, as_of=point, mode="read_optimized")) == of_base, point
            # Hudi's readers take for known as of a time what was requested up to it, whenever that completed.
            if history.requested_until(point) == history.completed_until(event.completion):
                assert as_text(of_hudi_rs(table, as_of=point)) == wanted, point
                assert as_text(of_hudi_rs(table, as_of=point, mode="read_optimized")) == of_base, point
    assert as_text(found(table, as_of=AFTER)) == as_text(found(table)) == as_text(history.as_of(AFTER))
    assert as_text(found(table, mode="read_optimized")) == base_rows(table, history, AFTER)


def base_rows(table: hudi.Table, history: ToldHistory, completion: str) -> list[str]:
    """Of the newest base file of each group then, found by the names alone."""
    completed = history.completed_until(completion)
    newest: dict[str, Path] = {}
    for path in sorted(data_files(Path(table.url.removeprefix("file://"))), key=instant_of):
        if kind(path) == "base" and instant_of(path) in completed:
            newest[f"{path.parent}/{path.name.partition('_')[0]}"] = path
    names = ["_hoodie_commit_time", *SCHEMA.names]
    return as_text([row for path in newest.values() for row in pq.ParquetFile(path).read(names).to_pylist()])


def check_ranges(table: hudi.Table, history: ToldHistory) -> None:
    for n, first in enumerate([Event(BEFORE, BEFORE, []), *history.events]):
        for last in history.events[max(n - 1, 0) :]:
            wanted = as_text(history.changed(first.completion, last.completion))
            assert as_text(found(table, since=first.completion, as_of=last.completion)) == wanted
            assert as_text(found(table, since=first.instant, as_of=last.instant)) == wanted
            # After a compaction hudi-rs goes by requested times, and lets rows outside of the range win; Spark does not.
            if all(event.changes is not None for event in history.events if event.completion <= last.completion):
                assert as_text(of_hudi_rs(table, since=first.completion, as_of=last.completion)) == wanted


def test_reading_on_from_where_the_last_read_ended_misses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    table = create(tmp_path)
    reader = hudi.open_table(table.url)
    at, seen = BEFORE, []
    for n in range(3):
        for k in range(n):
            table.upsert(rows((f"k{k}", n, f"{n}")))
        scan = reader.scan(since=at)
        seen.append(sorted(map(str, scan.to_table()["note"].to_pylist())))
        at = scan.as_of if scan.as_of else at
        assert reader.scan(since=at).to_table().num_rows == 0
        assert reader.scan(since=at).as_of == at
    assert seen == [[], ["1"], ["2", "2"]]
    assert at == table.commits()[-1].completion


def test_a_late_row_is_a_change_unless_a_compaction_of_the_range_has_dropped_it(tmp_path: Path) -> None:
    """Seen with Hudi 1.2 on Spark (tests/interop): rows of older commits do not take part, also not those in its base file."""
    table = create(tmp_path, buckets=1)
    table.upsert(rows(("a", 10, "one"), ("b", 10, "one"), ("c", 10, "one")))
    table.upsert(rows(("a", 5, "two late"), ("d", 5, "two")))
    table.compact()
    table.upsert(rows(("b", 5, "three late"), ("e", 5, "three")))
    table.delete(keys(("d", 9), ("c", 1)))
    first, second, compaction, third, _ = (info.completion for info in table.commits())

    def changed(since: str, as_of: str | None = None) -> set[tuple[str, str]]:
        found = table.scan(["id", "note"], since=since, as_of=as_of).to_table().to_pylist()
        return {(row["id"], row["note"]) for row in found}

    assert changed(first, second) == {("a", "two late"), ("d", "two")}
    assert changed(first, compaction) == {("d", "two")}
    assert changed(first, third) == {("d", "two"), ("b", "three late"), ("e", "three")}
    assert changed(first) == changed(second) == changed(compaction) == {("b", "three late"), ("e", "three")}
    narrow = table.scan(["id"], filter=pc.field("ts") < 8, since=first, as_of=third).to_table()["id"].to_pylist()
    assert sorted(map(str, narrow)) == ["b", "d", "e"]


def test_a_commit_that_a_listing_missed_is_not_skipped_for_good(tmp_path: Path) -> None:
    """A listing may show a commit and not the one before it, when both came while it ran."""
    table = create(tmp_path)
    done = [table.upsert(rows((name, 1, name))) for name in "abc"]

    class Racing(CountingStore):
        def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
            found = super().list_folder(folder, after=after, sizes=sizes)
            if folder == TIMELINE_FOLDER and self.listed.count(folder) == 1:
                return FolderListing([name for name in found.files if not name.startswith(done[1].instant)], found.folders)
            return found

    store = Racing(tmp_path / "table")
    reader = open_on(store)
    store.listed.clear()
    scan = reader.scan(since=done[0].completion)
    assert sorted(map(str, scan.to_table()["id"].to_pylist())) == ["b", "c"]
    assert scan.as_of == done[2].completion


def test_a_range_says_where_it_ends_even_when_it_is_asked_for_the_future(tmp_path: Path) -> None:
    table = create(tmp_path)
    done = table.upsert(rows(("a", 1, "x")))
    assert table.scan(since=BEFORE, as_of=AFTER).as_of == done.completion
    assert table.scan(as_of=AFTER).as_of == table.scan().as_of == done.completion
    assert table.scan(as_of=BEFORE).as_of == ""


def test_filters_columns_and_partitions_hold_in_every_kind_of_query(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    first = table.upsert(pa.concat_tables([rows(("a", 1, "x"), ("b", 2, "y")), rows(("c", 3, "x"), part="q")]))
    table.compact()
    table.upsert(pa.concat_tables([rows(("a", 3, "z"), ("d", 1, "x")), rows(("c", 4, "z"), part="q")]))
    table.delete(keys(("b", 5)))
    queries: list[dict[str, Any]] = [
        {"mode": "read_optimized"},
        {"as_of": first.instant},
        {"since": first.completion},
        {"since": BEFORE},
    ]
    for query in queries:
        everything = table.scan(**query).to_table()
        assert everything.num_rows
        for expression in (pc.field("note") == "x", pc.field("ts") > 2, pc.field("part") == "q"):
            narrow = table.scan(["ts", "id"], filter=expression, **query)
            assert narrow.schema.names == ["ts", "id"]
            wanted = everything.filter(expression).select(["ts", "id"])
            assert as_text(narrow.to_table().to_pylist()) == as_text(wanted.to_pylist())
        for partitions in (["q"], [{"part": "p"}]):
            one = table.scan(partitions=partitions, **query).to_table()
            name = partitions[0] if isinstance(partitions[0], str) else partitions[0]["part"]
            assert as_text(one.to_pylist()) == as_text(everything.filter(pc.field("part") == name).to_pylist())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"mode": "fast"}, "Choose one of snapshot, read_optimized"),
        ({"mode": "read_optimized", "since": BEFORE}, "leave one of them out"),
        ({"as_of": "yesterday"}, "10 minutes ago"),
        ({"since": "2026-11-21:10"}, "10 minutes ago"),
        ({"since": AFTER, "as_of": BEFORE}, "Swap them"),
    ],
)
def test_an_invalid_query_is_refused(tmp_path: Path, query: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        create(tmp_path).scan(**query)


def test_a_time_of_14_digits_is_a_whole_second(tmp_path: Path) -> None:
    table = create(tmp_path)
    done = table.upsert(rows(("a", 1, "x")))
    assert table.scan(as_of=done.completion[:14]).to_table().num_rows == 1
    assert table.scan(since=done.completion[:14]).to_table().num_rows == 0
