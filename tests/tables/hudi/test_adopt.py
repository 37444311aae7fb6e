"""Tables that Spark made become ours to write: checked first, refused with a reason, and afterwards written as any other."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import parse_time
from headgate_tables.errors import (
    ClockError,
    FixCall,
    ForeignWriterError,
    MetadataTableError,
    OptionError,
    TablesError,
    UnsupportedTableError,
)
from headgate_tables.face.results import AdoptResult
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.guard import MetadataTable
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.hudi.timeline.clean_metadata import Cleaned, encode_clean_plan
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from support.faults import READS, FailingStore, Fault, InPlaceStore, KilledError
from support.golden import comparable, expected_rows, names, unpack
from support.handles import open_on
from support.model import Change, Model
from support.refusals import refused
from support.systems import SetClock, system
from support.tables import by_hudi_rs

BUCKETED = [name for name in names("*_v8_mor_*") if "bloom" not in name]
BLOOM = [name for name in names("*_v8_mor_*") if "bloom" in name]
VERSION_9 = [f"h120_v9_mor_{kind}" for kind in ("bucket_part", "compaction_pending", "event_time_late")]
PENDING = [name for name in BUCKETED if "compaction_pending" in name]
TIMELINE = ".hoodie/timeline"
Row = dict[str, Any]


def properties_of(path: Path) -> dict[str, str]:
    return parse((path / PROPERTIES_PATH).read_bytes(), "")


def set_property(path: Path, key: str, value: str) -> None:
    (path / PROPERTIES_PATH).write_bytes(render(properties_of(path) | {key: value}, "Edited"))


def everything(path: Path) -> Mapping[str, bytes | None]:
    return {str(file): file.read_bytes() if file.is_file() else None for file in path.rglob("*")}


def groups_of(table: hudi.Table) -> set[tuple[str, str]]:
    return {(group.partition, group.file_id) for group in table.file_groups()}


def assert_rows(table: hudi.Table, wanted: list[Row], *, hudi_rs: bool = True) -> None:
    """By this handle, a new one and hudi-rs."""
    for found in (table.scan().to_table(), hudi.open_table(table.url).scan().to_table()):
        assert comparable(found.to_pylist()) == comparable(wanted)
    if hudi_rs:
        theirs = [{name: row[name] for name in table.schema.names} for row in by_hudi_rs(table.url)]
        assert comparable(theirs) == comparable(wanted)
    assert table.verify().ok


def raised(table: hudi.Table, rows: list[Row], by: int) -> list[Row]:
    """The same rows with a larger ordering value."""
    definition = table.definition
    assert definition is not None
    return [row | {definition.ordering: row[definition.ordering] + by} for row in rows] if definition.ordering else rows


def renamed(table: hudi.Table, rows: list[Row]) -> list[Row]:
    """The same rows under keys that are new."""
    definition = table.definition
    assert definition is not None
    key = definition.record_key[0]
    return [row | {key: row[key] + 10**6 if isinstance(row[key], int) else f"new {row[key]}"} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUCKETED + VERSION_9)
def test_a_table_of_spark_is_adopted_written_compacted_and_read_by_all(tmp_path: Path, name: str) -> None:
    path = Path(unpack(name, tmp_path))
    readable = "types_avro" not in name  # hudi-rs cannot read times inside structs from Avro log blocks
    table = hudi.open_table(str(path), metadata_table="remove")
    before = table.scan().to_table().to_pylist()
    groups = groups_of(table)
    result = table.adopt(buckets=2)
    assert list(result.completed) == [commit.instant for commit in table.commits()]
    assert comparable(before) == comparable(expected_rows(name).select(table.schema.names).to_pylist())
    assert_rows(table, before, hudi_rs=readable)
    definition = table.definition
    assert definition is not None
    model = Model(definition.record_key, definition.partition_by, definition.ordering).after([Change("upsert", before)])
    # More than there are groups in some: new keys in every partition begin the groups that were missing.
    changes = [
        Change("upsert", raised(table, before[::2], 1)),
        Change("upsert", renamed(table, before)),
        Change("delete", raised(table, before[1::3], 2)),
    ]
    for change in changes:
        rows = pa.Table.from_pylist(list(change.rows), table.schema)
        if change.kind == "upsert":
            table.upsert(rows)
        else:
            table.delete(rows)
        model = model.after([change])
        assert_rows(table, model.rows(), hudi_rs=readable)
    assert groups_of(table) >= groups, "a group that was there has another id now"
    plans = list(table.plans)
    for _ in range(len(plans) + 1):
        assert table.compact().completion
    assert not table.plans
    assert all(part.base and not part.logs for group in table.file_groups() for part in group.slices()[-1:])
    assert_rows(table, model.rows())
    again = hudi.open_table(str(path))
    assert again.adopt() == AdoptResult((), (), (), ())
    again.upsert(pa.Table.from_pylist(raised(table, before[:1], 9), table.schema))


@pytest.mark.parametrize("name", PENDING)
def test_a_compaction_that_spark_planned_is_executed_by_us(tmp_path: Path, name: str) -> None:
    path = Path(unpack(name, tmp_path))
    [planned] = path.glob(f"{TIMELINE}/*.compaction.requested")
    instant = planned.name[:17]
    # A runner of Spark's that died has left this; two base files of one instant make hudi-rs refuse the table.
    (path / TIMELINE / f"{instant}.compaction.inflight").touch()
    [base] = path.glob("00000000-*_*.parquet")
    leftover = path / f"{base.name.partition('_')[0]}_0-99-7_{instant}.parquet"
    shutil.copy(base, leftover)
    marker = path / f".hoodie/.temp/{instant}/{leftover.name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    table = hudi.open_table(str(path))
    rows = table.scan().to_table().to_pylist()
    result = table.adopt(buckets=2)
    assert list(result.plans) == [instant]
    assert not leftover.exists()
    assert not marker.exists()
    plan = table.plans[instant]
    assert {each.output.partition("_")[0] for each in plan.operations} == {group for _, group in groups_of(table)}
    sizes = {pin.name: pin.size for each in plan.operations for pin in (each.base, *each.logs) if pin}
    assert sizes == {file: (path / file).stat().st_size for file in sizes}
    table.upsert(pa.Table.from_pylist(raised(table, rows[:3], 1), table.schema))
    done = table.compact()
    assert done.instant == instant
    assert {path.joinpath(each.operation.path) for each in done.finished} == set(path.glob(f"*_0-0-0_{instant}.parquet"))
    assert list(path.glob(f"{TIMELINE}/{instant}_*.commit"))
    assert_rows(table, rows[3:] + raised(table, rows[:3], 1))


@pytest.mark.parametrize(
    ("buckets", "how"), [(None, "nothing in a table says"), (1, "buckets=1 does not"), (7, "buckets=7 does not")]
)
def test_a_bucket_count_that_does_not_fit_is_refused_and_the_right_one_named(
    tmp_path: Path, buckets: int | None, how: str
) -> None:
    """Rule FI2."""
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    before = everything(path)
    with refused(OptionError, how, "Pass buckets=2, "):
        hudi.open_table(str(path)).adopt(buckets=buckets)
    with refused(OptionError, "buckets=0", "Choose 1 to"):
        hudi.open_table(str(path)).adopt(buckets=0)
    assert everything(path) == before


@pytest.mark.parametrize("name", BLOOM)
def test_a_table_with_another_index_is_refused(tmp_path: Path, name: str) -> None:
    path = Path(unpack(name, tmp_path))
    before = everything(path)
    with refused(MetadataTableError, "has a metadata table", "metadata_table='remove'"):
        hudi.open_table(str(path)).adopt(buckets=2)
    with refused(UnsupportedTableError, "another index than the simple bucket index", "Load its rows"):
        hudi.open_table(str(path), metadata_table="remove").adopt(buckets=2)
    assert everything(path) == before


def consistent_hashing(path: Path) -> None:
    folder = path / ".hoodie/.bucket_index/consistent_hashing_metadata"
    folder.mkdir(parents=True)
    (folder / "00000000000000.hashing_meta").touch()


def another_key_prefix(path: Path) -> None:
    set_property(path, "hoodie.table.recordkey.fields", "name")


@pytest.mark.parametrize(
    ("change", "what", "fix"),
    [
        (("hoodie.table.version", "10"), "table version 10; versions 8, 9", "Upgrade headgate-tables"),
        (("hoodie.table.type", "COPY_ON_WRITE"), "copy-on-write", "Create a merge-on-read"),
        (("hoodie.table.keygenerator.type", "TIMESTAMP"), "keys are made by TIMESTAMP", "load its rows"),
        (("hoodie.table.keygenerator.type", "CUSTOM"), "keys are made by CUSTOM", "load its rows"),
        (("hoodie.table.recordkey.fields", "name"), "has the record key 'k|cannot be written here", "load its rows"),
        (consistent_hashing, "bucket index of its own", "Only the simple bucket index"),
    ],
    ids=["version 10", "copy on write", "timestamp keys", "custom keys", "other keys", "consistent hashing"],
)
def test_a_feature_that_is_not_written_is_refused_and_nothing_is_touched(
    tmp_path: Path, change: Any, what: str, fix: str
) -> None:
    path = Path(unpack("h120_v8_mor_compaction_pending", tmp_path))
    if isinstance(change, tuple):
        set_property(path, *change)
    else:
        change(path)
    before = everything(path)
    with refused(UnsupportedTableError, what, fix):
        hudi.open_table(str(path)).adopt(buckets=2)
    assert everything(path) == before


@pytest.mark.parametrize("opened", ["remove", "refuse"])
def test_a_metadata_table_is_removed_on_request(tmp_path: Path, opened: MetadataTable) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    set_property(path, "hoodie.table.metadata.partitions", "files")
    (path / ".hoodie/metadata/files").mkdir(parents=True)
    table = hudi.open_table(str(path), metadata_table=opened)
    rows = table.scan().to_table().to_pylist()
    table.adopt(buckets=2, remove_metadata_table=opened == "refuse")
    assert not (path / ".hoodie/metadata").exists()
    assert "hoodie.table.metadata.partitions" not in properties_of(path)
    assert_rows(table, rows)


def test_a_metadata_table_that_was_only_built_is_removed_by_an_adoption_and_a_later_one_is_refused(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    hudi.open_table(str(path)).adopt(buckets=2)
    table = hudi.open_table(str(path))
    for _ in range(2):
        set_property(path, "hoodie.table.metadata.partitions", "files")
        with refused(MetadataTableError, "has a metadata table", "remove_metadata_table=True"):
            table.adopt()
        table.adopt(remove_metadata_table=True)
        assert "hoodie.table.metadata.partitions" not in properties_of(path)


def test_instants_are_in_utc_and_above_all_others_from_then_on(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    assert properties_of(path)["hoodie.table.timeline.timezone"] == "LOCAL"
    newest = max(file.name.partition("_")[2][:17] for file in (path / TIMELINE).glob("*.deltacommit"))
    clock = SetClock(parse_time(newest) - 4_000)  # 5 s would be an error
    table = hudi.open_table(str(path), system=system(clock))
    table.adopt(buckets=2)
    assert properties_of(path)["hoodie.table.timeline.timezone"] == "UTC"
    state = read_state(open_store(str(path), None, SystemIds()), LOG_LAYOUT)[0]
    assert all(reserved > newest for reserved in state.reserved)
    result = table.upsert(table.scan().to_table())
    assert result.instant > newest


def test_a_timeline_that_is_ahead_of_the_clock_is_refused(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    newest = max(file.name.partition("_")[2][:17] for file in (path / TIMELINE).glob("*.deltacommit"))
    clock = SetClock(parse_time(newest) - 3_600_000)
    before = everything(path)
    with refused(ClockError, "zone east of UTC", "when UTC has caught up"):
        hudi.open_table(str(path), system=system(clock)).adopt(buckets=2)
    assert everything(path) == before


def rollback_plan(instant: str) -> bytes:
    """What is read of one."""
    info = {"type": "record", "name": "HoodieInstantInfo", "fields": [{"name": "commitTime", "type": "string"}]}
    schema = {"type": "record", "name": "HoodieRollbackPlan", "fields": [{"name": "instantToRollback", "type": info}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"instantToRollback": {"commitTime": instant}}])
    return out.getvalue()


PLANS = {
    "clean": encode_clean_plan(Cleaned("20261121002237500", "KEEP_LATEST_COMMITS", "", "", {}), "file:///t"),
    "rollback": rollback_plan("20261121002237400"),
}


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_rollback_of_a_completed_commit_that_has_begun_cannot_be_rolled_back(tmp_path: Path, state: str) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    newest = max(file.name for file in (path / TIMELINE).glob("*_*.deltacommit"))[:17]
    (path / TIMELINE / "20261121002237500.rollback.requested").write_bytes(rollback_plan(newest))
    table = hudi.open_table(str(path))
    rows = table.scan().to_table().to_pylist()
    if state == "inflight":
        (path / TIMELINE / "20261121002237500.rollback.inflight").touch()
        with refused(ForeignWriterError, f"may have deleted some files of {newest}", "Finish it"):
            table.adopt(buckets=2, roll_back=True)
    else:
        table.adopt(buckets=2, roll_back=True)
        assert_rows(table, rows)


@pytest.mark.slow
@pytest.mark.parametrize("action", ["deltacommit", "replacecommit", "clean", "rollback", "logcompaction", "indexing"])
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_write_that_is_pending_is_refused_or_rolled_back(tmp_path: Path, action: str, state: str) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    rows = hudi.open_table(str(path)).scan().to_table().to_pylist()
    instant = "20261121002237500"
    begun = [path / TIMELINE / f"{instant}.{action}.requested"]
    if state == "inflight":
        begun += [path / TIMELINE / f"{instant}.{action}.inflight"]
        if action in PLANS:
            begun[0].write_bytes(PLANS[action])
    log = next(path.glob(".00000000-*.log.1_*"))
    begun += [path / f"{log.name.partition('_')[0]}_{instant}.log.1_0-77-9"]
    begun += [path / f".hoodie/.temp/{instant}/{begun[-1].name}.marker.CREATE"]
    for file in begun:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    before = everything(path)
    with refused(ForeignWriterError, rf"begun {instant}\.{action}\.{state} and not finished", "roll_back=True"):
        hudi.open_table(str(path)).adopt(buckets=2)
    assert everything(path) == before
    table = hudi.open_table(str(path))
    assert list(table.adopt(buckets=2, roll_back=True).rolled_back) == [instant]
    assert not any(file.exists() for file in begun)
    assert_rows(table, rows)
    assert table.upsert(table.scan().to_table()).upserted == len(rows)


def test_a_row_that_is_marked_as_deleted_is_refused(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("h120_v8_mor_bucket_np", tmp_path))
    table.adopt(buckets=2)
    rows = table.scan().to_table().slice(0, 3)
    at = rows.schema.get_field_index("_hoodie_is_deleted")
    marked = rows.set_column(at, rows.schema.field(at), pa.array([False, True, None]))
    before = table.scan().to_table().to_pylist()
    with refused(FixCall, "row 1 has _hoodie_is_deleted", "as a delete"):
        table.upsert(marked)
    assert comparable(table.scan().to_table().to_pylist()) == comparable(before)


@pytest.mark.slow
@pytest.mark.parametrize("store_class", [FailingStore, InPlaceStore], ids=["staged", "in place"])
def test_adopting_that_is_killed_anywhere_is_repeated(tmp_path: Path, store_class: type[FailingStore]) -> None:
    original = Path(unpack("h120_v8_mor_compaction_pending", tmp_path))
    pending = "20261121002450000"
    (original / TIMELINE / f"{pending}.deltacommit.requested").touch()
    (original / TIMELINE / f"{pending}.deltacommit.inflight").touch()
    log = next(original.glob(".00000000-*.log.1_*"))
    shutil.copy(log, original / f"{log.name.partition('_')[0]}_{pending}.log.1_0-77-9")
    rows = hudi.open_table(str(original)).scan().to_table().to_pylist()

    def opened(store: FailingStore) -> hudi.Table:
        return open_on(store, system(SetClock()))

    def killed(path: Path, step: int) -> str:
        at, after_it = divmod(step, 2)
        store = store_class(path, SystemIds())
        table = opened(store)
        fault = store.fault = Fault(at, after=bool(after_it))
        with contextlib.suppress(KilledError):
            table.adopt(buckets=2, roll_back=True)
        return fault.happened

    met: list[str] = []
    while not met or met[-1]:
        path = tmp_path / f"killed {len(met)}"
        shutil.copytree(original, path)
        met.append(killed(path, len(met) + 2))
        if met[-1].startswith(READS):
            continue
        again = opened(store_class(path, SystemIds()))
        again.adopt(buckets=2, roll_back=True)
        again.tidy()
        assert list(again.plans) == ["20261121002443797"]
        assert not list(path.rglob(f"*{pending}*"))
        assert_rows(again, rows)
        assert again.compact().completion
        assert_rows(again, rows)
        shutil.rmtree(path)
    kinds = {call.partition(" ")[0] for call in met}
    assert {"create", "replace", "delete", "get"} <= kinds, kinds
    slots = [call for call in met if call.startswith("create") and "/slot/" in call]
    assert len(slots) == 2 * 3, "before and after CONFIG, FENCE, ADOPT"


def test_the_log_of_an_adopted_table_begins_with_its_definition_a_fence_and_what_was_there(tmp_path: Path) -> None:
    path = Path(unpack("h102_v8_mor_bucket_part2_url", tmp_path))
    table = hudi.open_table(str(path))
    table.adopt(buckets=2)
    state, slots = read_state(open_store(str(path), None, SystemIds()), LOG_LAYOUT)
    assert [slot.kind for slot in slots] == [SlotKind.CONFIG, SlotKind.FENCE, SlotKind.ADOPT]
    assert state.commits == {commit.instant: commit.completion for commit in table.commits()}
    definition = Definition.decode(state.config)
    assert {(partition, file_id) for partition, groups in definition.groups.items() for file_id in groups.values()} == groups_of(
        table
    )
    for partition, groups in definition.groups.items():
        assert {bucket: definition.file_id(partition, bucket) for bucket in groups} == groups


def test_everything_but_adopt_still_refuses_the_table(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("h120_v8_mor_bucket_np", tmp_path))
    calls: list[Any] = [table.own, table.compact, lambda: table.upsert(table.scan().to_table())]
    for call in calls:
        with pytest.raises(TablesError, match=r"adopt\(buckets"):
            call()
