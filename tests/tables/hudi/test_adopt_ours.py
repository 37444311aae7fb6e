"""Tables of ours that another program has written: what it did becomes ours, and nothing of it is undone or doubled."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headgate_runtime.definitions import definition_message
from headgate_tables import hudi
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import (
    ClockError,
    DeposedError,
    ForeignWriterError,
    MissingFileError,
    OptionError,
    OutcomeUnknownError,
    StoreUnavailableError,
    TableOwnedError,
    TransactionError,
    UnsupportedTableError,
)
from headgate_tables.face.results import AdoptResult
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import place
from headgate_tables.hudi.services.compaction.execution import compact_slice
from headgate_tables.opening import as_hudi
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Outcome
from headgate_tables.system import SystemIds
from headgate_writer.orders import read_definition
from support.handles import open_on
from support.other_program import other_program
from support.refusals import refused
from support.splitting import split
from support.systems import NOON, FaultyStore, SetClock, system
from support.table_files import data_files
from support.tables import SHORT, create, keys, notes, rows

NOTHING = AdoptResult((), (), (), ())


def timeline(path: Path) -> set[str]:
    return {file.name for file in (path / ".hoodie/timeline").iterdir() if file.is_file()}


def slots(path: Path) -> list[str]:
    return sorted(os.listdir(path / LOG_LAYOUT.slots))


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def state_of(path: Path) -> Any:
    return read_state(open_store(str(path), None, SystemIds()), LOG_LAYOUT)[0]


def assert_healthy(table: hudi.Table, wanted: dict[str, str]) -> None:
    """Read by all, written by this handle and then by one that takes over, which puts nothing back."""
    assert notes(table) == wanted
    assert table.verify().ok, table.verify().findings
    table.upsert(rows(("own", 1, "x")))
    again = hudi.open_table(table.url)
    again.upsert(rows(("own", 2, "y")))
    again.tidy()
    assert notes(again) == wanted | {"own": "y"}
    assert again.verify().ok, again.verify().findings
    assert again.adopt() == NOTHING


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = create(tmp_path)
    made.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    made.upsert(rows(("a", 2, "y")))
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.mark.parametrize("which", ["the handle that wrote", "a new handle"])
def test_rows_of_another_program_are_there_and_writing_continues(table: hudi.Table, path: Path, which: str) -> None:
    with other_program(path) as other:
        other.upsert(rows(("b", 3, "theirs"), ("c", 1, "theirs")))
        other.delete(keys(("a", 9)))
    handle = table if which == "the handle that wrote" else hudi.open_table(table.url)
    with refused(ForeignWriterError, "another program wrote", r"call adopt\(\)"):
        handle.upsert(rows(("d", 1, "x")))
    found = handle.adopt()
    theirs = [commit.instant for commit in table.commits()][2:]
    assert found == AdoptResult(tuple(theirs), (), (), ())
    assert_healthy(handle, {"b": "theirs", "c": "theirs"})


def test_adopting_a_table_without_foreign_writes_changes_nothing(table: hudi.Table, path: Path) -> None:
    before = slots(path)
    assert table.adopt() == NOTHING
    assert hudi.open_table(table.url).adopt(buckets=2) == NOTHING
    assert slots(path) == before
    with refused(OptionError, "buckets=3, but the table has 2", "out"):
        table.adopt(buckets=3)
    table.upsert(rows(("c", 1, "x")))  # the handle that wrote still owns the table


@pytest.mark.parametrize("which", ["the handle that wrote", "a new handle"])
def test_times_of_the_other_program_that_are_ahead_of_the_clock_are_refused_before_anything_is_written(
    tmp_path: Path, path: Path, which: str
) -> None:
    """The log would refuse them as well, but not before the fence has deposed whoever writes, nor with a word of time zones."""
    clock, hour = SetClock(), 3_600_000
    table = create(tmp_path, system=system(clock))
    table.upsert(rows(("a", 1, "x")))
    with other_program(path, system=system(SetClock(NOON + hour))) as other:
        other.upsert(rows(("b", 1, "theirs")))
    handle = table if which == "the handle that wrote" else hudi.open_table(table.url, system=system(clock))
    before = contents(path)
    for now in (NOON, NOON + hour - 6_000):
        clock.now = now
        with refused(ClockError, "zone east of UTC", "when UTC has caught up"):
            handle.adopt()
        assert contents(path) == before
    clock.now = NOON + hour - 4_000  # 5 s are no error: clocks differ a little
    [theirs] = handle.adopt().completed
    assert handle.upsert(rows(("c", 1, "x"))).instant > theirs
    assert notes(handle) == {"a": "x", "b": "theirs", "c": "x"}


def test_a_transaction_that_is_open_has_to_end_first(table: hudi.Table) -> None:
    with table.transaction() as transaction:
        with refused(TransactionError, "is open", "Commit or roll"):
            table.adopt()
        transaction.rollback()
    assert table.adopt() == NOTHING


def test_a_handle_that_was_open_elsewhere_is_deposed(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    hudi.open_table(table.url).adopt()
    with pytest.raises(DeposedError):
        table.upsert(rows(("d", 1, "x")))
    assert notes(table) == {"a": "y", "b": "x", "c": "theirs"}


def test_the_library_adopts_no_table_of_a_cluster(table: hudi.Table, path: Path) -> None:
    hudi.open_table(table.url, owner=hudi.OwnerProcess("cluster", "there", 1, "localhost:7070")).own()
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    with refused(TableOwnedError, "belongs to the cluster", "connect"):
        hudi.open_table(table.url).adopt()
    assert hudi.open_table(table.url, take_over=True).adopt().completed


def test_file_groups_of_the_other_program_keep_their_ids_for_writers_that_see_no_files(table: hudi.Table, path: Path) -> None:
    """Rule FI1."""
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs"), ("d", 1, "theirs"), part="new"))
        theirs = {group.file_id for group in other.file_groups() if group.partition == "new"}
    table.adopt()
    assert table.definition is not None
    definition = as_hudi(read_definition(definition_message(table.definition)))  # as an order to a writer carries it
    assert set(definition.groups["new"].values()) == theirs
    assert definition == table.definition
    assert hash(definition) == hash(table.definition)
    with table.transaction() as transaction:
        writer = ChangeWriter(open_store(table.url, None, SystemIds()), definition, epoch=table.epoch, process="p", ordinal=1)
        changes = split(place(rows(("c", 2, "ours"), ("e", 1, "ours"), part="new"), None, definition))
        transaction.announce()
        statuses = writer.write(transaction.instant, changes, [1] * len(changes), block_format="parquet")
        assert {status.stat.file_id for status in statuses} <= theirs
        transaction.add(statuses)
        transaction.commit()
    assert notes(table) == {"a": "y", "b": "x", "c": "ours", "d": "theirs", "e": "ours"}


def rename_output(path: Path, instant: str) -> list[Path]:
    """As Spark would have named it: another write token."""
    [commit] = (path / ".hoodie/timeline").glob(f"{instant}_*.commit")
    commit.write_bytes(commit.read_bytes().replace(f"_0-0-0_{instant}".encode(), f"_9-8-7_{instant}".encode()))
    outputs = list(path.rglob(f"*_0-0-0_{instant}.parquet"))
    assert outputs
    for output in outputs:
        output.rename(output.with_name(output.name.replace("_0-0-0_", "_9-8-7_")))
    return outputs


@pytest.mark.parametrize("token", ["the same", "another"])
@pytest.mark.parametrize("compactor", ["none", "before", "after"])
def test_a_plan_of_ours_that_the_other_program_executed_is_done(
    table: hudi.Table, path: Path, token: str, compactor: str
) -> None:
    """A compactor of ours may have made the output already, or make it late; beside the other program's it must not stay."""
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    with other_program(path) as other:
        assert other.compact().instant == plan.instant

    def ours() -> None:
        store = open_store(table.url, None, SystemIds())
        for each in plan.operations:
            definition, layout = table.definition, table._opened.layout
            assert definition is not None
            compact_slice(
                store, definition, layout, each, plan.instant, stage="", settings=table.settings, progress=lambda _: None
            )

    if token == "another":
        rename_output(path, plan.instant)
    if compactor == "before":
        ours()
    found = table.adopt()
    assert found.finished_plans == (plan.instant,)
    assert not table.plans
    assert all((path / each.path).exists() is (token == "the same") for each in plan.operations)
    if compactor == "after":
        ours()
        with hudi.open_table(table.url) as again:
            again.tidy()
    assert all((path / each.path).exists() is (token == "the same") for each in plan.operations)
    assert_healthy(hudi.open_table(table.url), {"a": "y", "b": "x"})


def test_a_compaction_that_the_other_program_planned_becomes_ours(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
        plan = other.plan_compaction(forced=True)
        other.upsert(rows(("a", 5, "later")))
    assert plan is not None
    assert table.adopt().plans == (plan.instant,)
    assert table.plans == {plan.instant: plan}
    table.upsert(rows(("b", 2, "beside it")))
    assert table.compact().instant == plan.instant
    assert not table.plans
    assert_healthy(table, {"a": "later", "b": "beside it", "c": "theirs"})


def test_instants_that_the_other_program_undid_do_not_return(table: hudi.Table, path: Path) -> None:
    """All its slots are still unfolded: a takeover would publish them again."""
    with other_program(path) as other:
        saved = other.savepoint()
    table.adopt()
    table.upsert(rows(("a", 3, "late"), ("c", 1, "late")))
    table.upsert(rows(("d", 1, "late"), part="new"))
    undone = [commit.instant for commit in table.commits()][2:]
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    with other_program(path) as other:
        other.restore(saved)
    found = hudi.open_table(table.url).adopt()
    assert found.removed == (*undone, plan.instant)
    assert not [file for file in data_files(path) if any(instant in file.name for instant in undone)]
    again = hudi.open_table(table.url)
    assert not again.plans
    assert not {name[:17] for name in timeline(path)} & set(undone)
    assert_healthy(again, {"a": "y", "b": "x"})


def test_files_that_the_other_program_archived_and_cleaned_do_not_return(table: hudi.Table, path: Path) -> None:
    for number in range(6):
        table.upsert(rows(("a", 3 + number, f"v{number}")))
    first = [commit.instant for commit in table.commits()][:4]
    with other_program(path) as other:
        other.configure(SHORT)
        other.compact()
        other.upsert(rows(("c", 1, "theirs")))
        other.compact()
        cleaned = other.clean().files
        archived = other.archive().instants
    assert set(first) <= set(archived)
    assert cleaned
    found = table.adopt()
    assert set(first) <= set(found.archived) <= set(archived)
    state = state_of(path)
    assert state.archived == max(archived)
    assert state.cleaned
    left = timeline(path)
    assert_healthy(table, {"a": "v5", "b": "x", "c": "theirs"})
    hudi.open_table(table.url).own()
    assert not {name[:17] for name in timeline(path)} & set(archived)
    assert left <= timeline(path)
    assert not [file for file in cleaned if (path / file).exists()]


def test_a_missing_file_that_is_still_needed_is_not_taken_for_cleaned(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    ours = [file for file in data_files(path) if "log" in file.name]
    ours[0].unlink()
    before = slots(path)
    with refused(MissingFileError, "part of the newest file slice, but not there", "then adopt again"):
        table.adopt()
    assert slots(path) == before


def test_a_savepoint_of_the_other_program_is_kept_and_gone_back_to(table: hudi.Table, path: Path) -> None:
    table.win_offsets({"channel": ChannelRecord(1, 40, "me", 0)})
    with other_program(path) as other:
        saved = other.savepoint()
    assert table.adopt().savepoints == (saved,)
    assert table.savepoints == [saved]
    table.upsert(rows(("a", 9, "late")))
    table.win_offsets({"channel": ChannelRecord(1, 50, "me", 0)})
    table.restore(saved)
    assert notes(table) == {"a": "y", "b": "x"}
    assert table.channels["channel"][1] == 40


def test_rows_after_a_savepoint_of_the_other_program_are_sent_again_when_it_is_gone_back_to(
    table: hudi.Table, path: Path
) -> None:
    """Which offset belongs to the savepoint is not known any more, so it is none: nothing is lost."""
    with other_program(path) as other:
        saved = other.savepoint()
        before = set(timeline(path))
        table.win_offsets({"channel": ChannelRecord(1, 40, "me", 0)})
        table.upsert(rows(("a", 9, "late")))
    assert timeline(path) > before
    table.adopt()
    table.restore(saved)
    assert table.channels["channel"][:2] == (1, 0)


def test_a_savepoint_that_the_other_program_removed_is_gone(table: hudi.Table, path: Path) -> None:
    saved = table.savepoint()
    hudi.open_table(table.url).own()
    for number in range(101):
        table = table if number else hudi.open_table(table.url)
        table.win_offsets({"channel": ChannelRecord(1, number, "me", 0)})
    table.upsert(rows(("c", 1, "x")))  # with a fold, so that it is known to have been published
    with other_program(path) as other:
        other.remove_savepoint(saved)
        other.upsert(rows(("d", 1, "theirs")))
    table.adopt()
    assert not table.savepoints
    assert_healthy(table, {"a": "y", "b": "x", "c": "x", "d": "theirs"})


def commits_fail(name: str) -> Outcome | None:
    """The slot is won, and the commit cannot be published."""
    if name.endswith(".deltacommit"):
        raise StoreUnavailableError("the disk is away", fix="Try again.")
    return None


def test_a_commit_of_ours_that_was_never_published_is_not_lost(tmp_path: Path) -> None:
    create(tmp_path).upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    store = FaultyStore(path)
    table = open_on(store)
    table.own()
    store.before_create = commits_fail
    with pytest.raises(OutcomeUnknownError):
        table.upsert(rows(("b", 1, "won and not published")))
    with other_program(path, roll_back=True) as other:
        other.upsert(rows(("c", 1, "theirs")))
    again = hudi.open_table(table.url)
    assert set(notes(again)) == {"a", "c"}
    again.adopt()
    assert_healthy(again, {"a": "x", "b": "won and not published", "c": "theirs"})


@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_a_commit_of_ours_that_the_other_program_rolled_back_is_gone_even_if_it_was_never_published(
    tmp_path: Path, action: str
) -> None:
    create(tmp_path).upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    store = FaultyStore(path)
    table = open_on(store)
    table.own()
    store.before_create = commits_fail
    with pytest.raises(OutcomeUnknownError):
        table.upsert(rows(("b", 1, "won and not published")))
    before = data_files(path)
    undone = max(timeline(path))[:17]
    with other_program(path, roll_back=True) as other:
        other.upsert(rows(("c", 1, "theirs")))
    names = {
        "rollback": ("HoodieRollbackMetadata", "commitsRollback"),
        "restore": ("HoodieRestoreMetadata", "instantsToRollback"),
    }
    kind, field = names[action]
    schema = {"type": "record", "name": kind, "fields": [{"name": field, "type": {"type": "array", "items": "string"}}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{field: [undone]}])
    done = f"{int(undone) + 1}_{int(undone) + 2}"
    (path / ".hoodie/timeline" / f"{done}.{action}").write_bytes(out.getvalue())
    again = hudi.open_table(table.url)
    assert again.adopt().removed == (undone,)
    assert not [file for file in data_files(path) if undone in file.name], before
    assert_healthy(again, {"a": "x", "c": "theirs"})


def test_two_file_groups_of_one_bucket_are_refused(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs"), part="new"))
        table.upsert(rows(("c", 1, "ours"), part="new"))
    before = slots(path)
    with refused(UnsupportedTableError, "has two file groups", "Rows of one key"):
        table.adopt()
    assert slots(path) == before


def test_file_groups_without_bucket_numbers_are_refused_by_their_instants(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        instant = other.upsert(rows(("c", 1, "theirs"), part="new")).instant
    [base] = (path / "new").glob("*.parquet")
    base.rename(base.with_name("abcdefab" + base.name[8:]))
    before = slots(path)
    with refused(
        UnsupportedTableError, f"abcdefab-.* in 'new', .*instants are {instant}", "Delete no file.*type=BUCKET.*buckets=2"
    ):
        table.adopt()
    assert slots(path) == before


@pytest.mark.parametrize("buckets", [1, 8])
def test_another_bucket_count_of_the_other_program_is_refused(tmp_path: Path, buckets: int) -> None:
    table = create(tmp_path, buckets=4)
    with other_program(tmp_path / "table", buckets=buckets) as other:
        other.upsert(rows(*((f"k{number}", 1, "x") for number in range(20))))
    with refused(UnsupportedTableError, "buckets", "load its rows|load the table's rows"):
        table.adopt()


def test_what_was_won_is_named_in_one_slot(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
        other.plan_compaction(forced=True)
    table.adopt()
    state, found = read_state(open_store(table.url, None, SystemIds()), LOG_LAYOUT)
    assert [slot.kind for slot in found][-1] is SlotKind.ADOPT
    assert not state.deleting
    assert min(state.reserved) > max(
        name[:35].replace("_", "")[-17:] if name[17] == "_" else name[:17] for name in timeline(path)
    )
