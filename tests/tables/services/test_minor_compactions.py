"""A minor compaction merges the logs of a slice alone: what readers see, and when it may be (rule DE5)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, DeposedError, OptionError
from headgate_tables.face.altering import Alteration
from headgate_tables.face.operation import Operation, Plan
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.log.block import HeaderKey
from headgate_tables.hudi.log.reader import DeleteBlock, read_log_file
from headgate_tables.hudi.log.writer import Deleted, encode_log_file
from headgate_tables.hudi.services.compaction import minor
from headgate_tables.hudi.services.foreign.work import plan_outputs
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.storage.spool import LocalSpool
from headgate_tables.storage.store import Outcome
from support.counting import counted
from support.minor import SETTINGS, compact, finish, only_minor, plan, plan_minor, run, sizes
from support.tables import SHORT, by_hudi_rs, create, keys, notes, rows


@pytest.fixture(params=["ts", None], ids=["event time", "commit time"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    """A base file of a to f and two commits on it: rows, then rows and deletes (x is new and gone again)."""
    made = create(tmp_path, ordering=request.param, partitioned=False, buckets=1)
    made.configure(SETTINGS)
    made.upsert(rows(*((letter, 10, f"base {letter}") for letter in "abcdef")))
    made.compact()
    made.upsert(rows(("b", 11, "newer"), ("c", 11, "older"), ("x", 1, "new")))
    with made.transaction() as both:
        both.upsert(rows(("c", 12, "newest"), ("z", 1, "fresh")))
        both.delete(gone(made, ("d", 11), ("x", 2)))
    return made


@pytest.fixture
def due(table: hudi.Table) -> hudi.Table:
    """The same table with one commit more, after which a compaction is due."""
    table.upsert(rows(("e", 11, "new")))
    return table


def gone(table: hudi.Table, *entries: tuple[str, int]) -> pa.Table:
    wanted = ["id", "ts"] if table.definition is not None and table.definition.ordering else ["id"]
    return keys(*entries).select(wanted)


SHOWN = {"a": "base a", "b": "newer", "c": "newest", "e": "new", "f": "base f", "z": "fresh"}


def test_the_new_slice_is_the_old_base_file_and_one_log_and_shows_the_same_rows(due: hudi.Table) -> None:
    before = {row["id"]: row for row in by_hudi_rs(due.url)}
    root = Path(due.url.removeprefix("file://"))
    operation = only_minor(compact(due))
    [part] = due.scan().slices()
    assert part.base == operation.output
    assert [log.name for log in part.logs] == [operation.merged_log]
    assert operation.base is not None
    assert (root / operation.path).read_bytes() == (root / operation.at(operation.base.name)).read_bytes()
    assert notes(due) == SHOWN
    after = {row["id"]: row for row in by_hudi_rs(due.url)}
    assert {key: row["_hoodie_commit_time"] for key, row in after.items()} == {
        key: row["_hoodie_commit_time"] for key, row in before.items()
    }
    assert not due.verify().findings


def test_nobody_needs_the_files_that_it_replaces(due: hudi.Table) -> None:
    due.configure(SHORT)
    operation = only_minor(compact(due))
    assert operation.base is not None
    old = {operation.at(each.name) for each in (*operation.logs, operation.base)}
    due.upsert(rows(("y", 1, "later")))
    due.upsert(rows(("y", 2, "latest")))
    due.clean()
    assert not old & sizes(due).keys()
    assert notes(due) == SHOWN | {"y": "latest"}
    assert not due.verify().findings


def test_a_delete_holds_back_the_base_files_row_until_an_ordinary_compaction(due: hudi.Table) -> None:
    compact(due)
    assert "d" not in notes(due)
    due.compact()
    [part] = due.scan().slices()
    assert not part.logs
    assert notes(due) == SHOWN


def test_the_merged_log_is_merged_again_with_what_came_since(due: hudi.Table) -> None:
    first = only_minor(compact(due))
    for number in range(5):
        due.upsert(rows(("a", 20 + number, f"again {number}"), ("d", 30, "back")))
    second = only_minor(compact(due))
    assert next(log.name for log in second.logs) == first.merged_log
    assert notes(due) == SHOWN | {"a": "again 4", "d": "back"}


def test_de5_a_row_of_a_later_commit_wins_a_tie_with_the_merged_log(due: hudi.Table) -> None:
    compact(due)
    due.upsert(rows(("b", 11, "a tie"), ("c", 12, "a tie"), ("z", 1, "a tie")))
    assert notes(due) == SHOWN | {"b": "a tie", "c": "a tie", "z": "a tie"}


def test_de5_nothing_is_planned_while_a_transaction_is_open_and_the_step_says_so(due: hudi.Table) -> None:
    """Its instant is before the plan's, so its rows would lose ties with those of the merged log."""
    with due.transaction() as transaction:
        transaction.upsert(rows(("b", 11, "a tie")))
        while (step := due.maintain()).more:
            pass
        assert step.waits
        assert not due.plans
    only_minor(compact(due))
    assert notes(due) == SHOWN | {"b": "a tie"}


def test_de5_instants_that_were_reserved_before_the_plan_are_not_used_after_it(due: hudi.Table) -> None:
    planned, _ = plan_minor(due)
    later = due.upsert(rows(("b", 11, "a tie"))).instant
    assert later > planned.instant
    finish(due, planned)
    assert notes(due) == SHOWN | {"b": "a tie"}


def test_a_slice_near_its_limits_is_compacted_whatever_is_open(due: hudi.Table) -> None:
    due.configure({"headgate.slice.max.log.files": "4"})
    with due.transaction() as transaction:
        transaction.upsert(rows(("b", 12, "open")))
        planned = plan(due)
        assert planned is not None
        assert not any(each.merged_log for each in planned.operations)
    finish(due, planned)
    assert notes(due) == SHOWN | {"b": "open"}


def test_logs_that_are_large_beside_the_base_file_are_merged_into_it(due: hudi.Table) -> None:
    due.configure({"headgate.compaction.minor.fraction": "0.1"})
    assert not any(each.merged_log for each in compact(due).operations)
    assert notes(due) == SHOWN


def test_logs_of_more_than_half_the_bytes_that_make_a_slice_due_are_merged_into_the_base_file(due: hudi.Table) -> None:
    due.configure({"headgate.compaction.log.bytes": "4000"})
    assert not any(each.merged_log for each in compact(due).operations)
    assert notes(due) == SHOWN


def test_a_compaction_that_somebody_asks_for_is_an_ordinary_one(due: hudi.Table) -> None:
    due.compact()
    [part] = due.scan().slices()
    assert not part.logs


def test_the_fraction_has_to_be_below_the_one_that_makes_a_slice_due(due: hudi.Table) -> None:
    with pytest.raises(OptionError, match="minor"):
        due.configure({"headgate.compaction.minor.fraction": "1000"})


def test_a_base_file_that_lacks_a_new_column_is_rewritten(due: hudi.Table) -> None:
    """hudi-rs reads no older type of a column: such a slice must not wait for its share of logs."""
    due.alter(Alteration(add={"more": pa.int64()}))
    compact(due)
    [part] = due.scan().slices()
    assert not part.logs


def test_a_second_attempt_finds_the_files_of_the_first_and_reports_the_same(due: hudi.Table) -> None:
    planned, _ = plan_minor(due)
    first = run(due, planned)
    assert run(due, planned) == first


def test_a_second_attempt_at_what_became_an_ordinary_compaction_reads_its_output_alone(due: hudi.Table) -> None:
    due.alter(Alteration(add={"more": pa.int64()}))
    planned, operation = plan_minor(due)
    first = run(due, planned)
    assert [done.log for done in first] == [None]
    due.close()
    again, store = counted(due.url)
    with store.forgetting():
        assert run(again, planned) == first
    assert store.data_files() == [operation.path]


def test_a_name_that_is_taken_is_refused_also_where_only_an_ordinary_compaction_will_do(due: hudi.Table) -> None:
    due.alter(Alteration(add={"more": pa.int64()}))
    planned, operation = plan_minor(due)
    (tmp_path_of(due) / operation.path).write_bytes(b"others")
    with pytest.raises(CorruptFileError, match="not the output of a compaction"):
        run(due, planned)


def test_a_name_that_holds_other_bytes_is_refused(due: hudi.Table) -> None:
    planned, operation = plan_minor(due)
    (Path(due.url.removeprefix("file://")) / operation.at(operation.merged_log)).write_bytes(b"others")
    with pytest.raises(CorruptFileError, match="other bytes"):
        run(due, planned)


def test_what_a_plan_did_not_make_of_its_names_is_deleted_whenever_it_appears(due: hudi.Table, tmp_path: Path) -> None:
    """Another attempt, of another version, may have thought that it had to make a log file."""
    due.alter(Alteration(add={"more": pa.int64()}))
    planned, operation = plan_minor(due)
    finish(due, planned)
    late = tmp_path / "table" / operation.at(operation.merged_log)
    late.write_bytes(b"late")
    due.tidy()
    assert not late.exists()


def test_a_cancelled_plan_leaves_neither_of_its_files(due: hudi.Table) -> None:
    planned, operation = plan_minor(due)
    run(due, planned)
    assert {*operation.outputs} <= sizes(due).keys()
    due.cancel_plan(planned.instant)
    due.tidy()
    assert not {*operation.outputs} & sizes(due).keys()
    assert notes(due) == SHOWN


def test_a_compactor_whose_stage_was_taken_away_makes_no_second_name(
    due: hudi.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, operation = plan_minor(due)
    created = LocalSpool.create

    def create_and_revoke(spool: LocalSpool) -> Outcome:
        outcome = created(spool)
        due._store.rename_folder(".hoodie/.headgate/stage/1", ".hoodie/.headgate/stage/1.revoked-x")
        return outcome

    monkeypatch.setattr(LocalSpool, "create", create_and_revoke)
    with pytest.raises(DeposedError):
        run(due, planned, stage=".hoodie/.headgate/stage/1/compactor")
    assert operation.path not in sizes(due)


def test_a_restore_to_before_it_brings_the_old_slice_back(due: hudi.Table) -> None:
    saved = due.savepoint()
    operation = only_minor(compact(due))
    due.upsert(rows(("b", 50, "to be undone")))
    due.restore(saved)
    assert not {*operation.outputs} & sizes(due).keys()
    assert notes(due) == SHOWN


def test_reads_of_the_past_find_the_old_slice(due: hudi.Table) -> None:
    before = due.commits()[-1].completion
    compact(due)
    due.upsert(rows(("b", 50, "later")))
    found = due.scan(as_of=before).to_table().to_pylist()
    assert {row["id"]: row["note"] for row in found} == SHOWN


def test_a_log_of_deletes_alone_is_merged(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=False, buckets=1)
    table.configure(SETTINGS)
    table.upsert(rows(*((letter, 10, f"base {letter}") for letter in "abc")))
    table.compact()
    for ts in (9, 11, 10):
        table.delete(gone(table, ("a", ts), ("b", 9)))
    only_minor(compact(table))
    assert notes(table) == {"b": "base b", "c": "base c"}
    table.upsert(rows(("a", 10, "older than its delete")))
    assert notes(table) == {"b": "base b", "c": "base c"}


def test_rows_of_several_blocks_are_all_there(due: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minor, "BLOCK_BYTES", 1)
    monkeypatch.setattr(minor, "BLOCK_DELETES", 1)
    compact(due)
    assert notes(due) == SHOWN


@pytest.mark.parametrize("how", ["a delete", "a row that says so"])
def test_a_delete_without_an_ordering_value_is_left_to_an_ordinary_compaction(tmp_path: Path, how: str) -> None:
    """Only Spark writes one."""
    table = create(tmp_path, partitioned=False, buckets=1)
    table.configure(SETTINGS)
    table.upsert(rows(("a", 10, "base"), ("b", 10, "base b")))
    table.compact()
    table.upsert(rows(("b", 11, "newer")))
    if how == "a delete":
        table.delete(keys(("a", 11)))
        table.upsert(rows(("a", 3, "younger")))
    else:
        table.upsert(rows(("a", 11, "gone")))
        table.upsert(rows(("b", 12, "newest")))
    planned, operation = plan_minor(table)
    without = _without_ordering(table, operation)
    [done] = run(table, Plan(planned.instant, (without,)))
    assert done.log is None
    assert (done.rows, done.updates) == ((2, 1) if how == "a delete" else (1, 1))


def test_rows_without_an_ordering_value_are_merged_alone(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=False, buckets=1)
    table.configure(SETTINGS)
    table.upsert(rows(("a", 10, "base")))
    table.compact()
    for key in "bcd":
        table.upsert(rows((key, 11, "new")))
    planned, operation = plan_minor(table)
    [done] = run(table, Plan(planned.instant, (_without_ordering(table, operation, marked=False),)))
    assert done.log is not None


def _without_ordering(table: hudi.Table, operation: Operation, *, marked: bool = True) -> Operation:
    """Writes the second log again, without ordering values. ``marked``: its rows, if it has some, as deletes."""
    context = table._context()
    path = tmp_path_of(table) / operation.at(operation.logs[1].name)
    [block] = read_log_file(pa.py_buffer(path.read_bytes()), path.name, lambda _: True)
    schema = block.block.headers[HeaderKey.SCHEMA]
    content: pa.Table | Deleted
    if isinstance(block, DeleteBlock):
        content = (block.rows.keys, "", None)
    else:
        found = block.read(block.column_names)
        content = found.set_column(found.schema.get_field_index("ts"), "ts", pa.nulls(found.num_rows, found["ts"].type))
        if marked:
            content = content.append_column("_hoodie_is_deleted", pa.array([True] * found.num_rows))
            parsed = json.loads(schema)
            parsed["fields"].append({"name": "_hoodie_is_deleted", "type": "boolean"})
            schema = json.dumps(parsed)
    encoded = encode_log_file(block.instant, schema, [content], layout_of(context.definition))
    path.write_bytes(b"".join(bytes(memoryview(piece)) for piece in encoded))
    logs = [*operation.logs]
    logs[1] = replace(logs[1], size=path.stat().st_size)
    return replace(operation, logs=tuple(logs))


def tmp_path_of(table: hudi.Table) -> Path:
    return Path(table.url.removeprefix("file://"))


def test_a_base_file_under_the_new_name_that_is_not_the_old_one_is_refused(due: hudi.Table) -> None:
    planned, operation = plan_minor(due)
    (tmp_path_of(due) / operation.path).write_bytes(b"another file")
    with pytest.raises(CorruptFileError, match="12 bytes"):
        run(due, planned)


def test_the_merged_log_counts_for_its_slice(due: hudi.Table) -> None:
    operation = only_minor(compact(due))
    size = sizes(due)[operation.at(operation.merged_log)]
    assert due.largest_slice() == SliceLogSize(1, size)
    due.upsert(rows(("q", 1, "one more")))
    counted = due.largest_slice()
    assert counted is not None
    assert counted.log_files == 2
    assert counted.log_bytes > size


def test_the_commit_names_both_files_and_their_checksums(due: hudi.Table) -> None:
    operation = only_minor(compact(due))
    [file] = (tmp_path_of(due) / ".hoodie/timeline").glob("*.commit")
    commit = decode_commit(file.read_bytes(), file.name)
    assert sorted(written.name for written in commit.written()) == sorted([operation.output, operation.merged_log])
    for path, digest in commit.digests().items():
        assert hashlib.sha256((tmp_path_of(due) / path).read_bytes()).hexdigest().startswith(digest)


def test_texts_that_repeat_in_one_log_and_not_in_another_are_merged(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=False, buckets=1)
    table.configure(SETTINGS)
    table.upsert(rows(("base", 1, "base")))
    table.compact()
    wanted = {"base": "base"}
    for turn, note in enumerate(["the same in all", "", "a third"]):
        some = {f"{turn}-{number}": note or f"its own, {number}" for number in range(3000)}
        table.upsert(rows(*((key, 1, text) for key, text in some.items())))
        wanted |= some
    only_minor(compact(table))
    assert notes(table) == wanted


def test_both_names_count_as_late_outputs_when_another_program_ends_the_plan(due: hudi.Table) -> None:
    planned, operation = plan_minor(due)
    assert plan_outputs(due._context().log.state, [planned.instant]) == {planned.instant: operation.outputs}


def test_a_slice_whose_minor_compaction_is_archived_is_read_by_all(due: hudi.Table) -> None:
    planned = compact(due)
    due.configure(SHORT | {"hoodie.compact.inline.max.delta.commits": "100"})
    for number in range(6):
        due.upsert(rows(("y", number, f"{number}")))
    due.archive()
    assert planned.instant not in {commit.instant for commit in due.commits()}
    assert notes(due) == SHOWN | {"y": "5"}


@pytest.mark.parametrize("lost", ["output", "merged_log"])
def test_w6_no_compaction_goes_on_without_a_file_that_a_minor_one_left(due: hudi.Table, lost: str) -> None:
    """Also when no slot names it any more, and an owner after that one lists the table."""
    operation = only_minor(compact(due))
    file = tmp_path_of(due) / getattr(operation, lost)
    due.upsert(rows(("f", 11, "newest")))
    log = due._opened.log
    assert log is not None
    log.fold()
    due.close()
    content = file.read_bytes()
    file.unlink()
    with hudi.open_table(due.url) as again:
        [why] = again.compact().dropped.values()
        assert f"{file.name} is pinned by a compaction, but not there" in why
        file.write_bytes(content)
        again.compact()
        assert again.stuck == []
        assert notes(again) == {**SHOWN, "e": "new", "f": "newest"}
