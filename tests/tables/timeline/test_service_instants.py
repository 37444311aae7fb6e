"""Plans and metadata of table services: every field as in the files that real Hudi wrote, and readable beside them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.operation import Operation, OperationResult, PinnedFile, Plan
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.timeline.clean_metadata import (
    Cleaned,
    decode_clean,
    decode_clean_plan,
    encode_clean,
    encode_clean_plan,
)
from headgate_tables.hudi.timeline.commit_metadata import WrittenFile, decode_commit, encode_compaction
from headgate_tables.hudi.timeline.compaction_plan import decode_plan, encode_plan
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.timeline.restore_metadata import encode_restore, encode_restore_plan
from headgate_tables.hudi.timeline.savepoint_metadata import encode_savepoint
from support.golden import comparable, expected_rows, unpack
from support.readers import read_by_hudi_rs
from support.saved_files import decode_savepoint

MEASURED = {"runtimeStats", "totalLogReadTimeMs", "totalLogSizeCompacted"}
"""Hudi 1.2 counts the rows' bytes inside the blocks as size of the logs, 1.0 and 1.1 the files; nobody reads it."""


def avro(data: bytes) -> dict[str, Any]:
    found: Any = next(iter(fastavro.reader(io.BytesIO(data))))
    return dict(found)


def fields(data: bytes) -> list[str]:
    written: Any = fastavro.reader(io.BytesIO(data)).writer_schema
    return [field["name"] for field in written["fields"]]


def timeline_files(table: str, pattern: str) -> list[Path]:
    found = sorted((Path(table) / ".hoodie/timeline").glob(pattern))
    assert found, f"{table} has no {pattern}"
    return found


def sizes_of(table: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(table).rglob("*") if path.is_file()}


def assert_same_but(ours: Mapping[str, Any], theirs: Mapping[str, Any], left_out: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    assert list(ours) == list(theirs)
    assert {key: value for key, value in ours.items() if key not in left_out} == {
        key: value for key, value in theirs.items() if key not in left_out
    }


PENDING = [
    ("h120_v8_mor_compaction_pending", "spark"),
    ("h102_v8_mor_compaction_pending", "spark"),
    ("h120_v9_mor_compaction_done", "spark"),
    ("mor_pending_compaction_v9", "flink"),
]


@pytest.mark.parametrize(("name", "writer"), PENDING)
def test_a_plan_of_hudi_is_read_and_written_again_with_the_same_fields(name: str, writer: str, tmp_path: Path) -> None:
    """Flink's is one of log files alone: no data file, the first log's instant, 120 MB to write."""
    table = unpack(name, tmp_path, writer=writer)
    (requested,) = timeline_files(table, "*.compaction.requested")
    planned = decode_plan(requested.read_bytes(), "plan")
    again = encode_plan(Plan("20270101000000000", tuple(each.pin(sizes_of(table), "not in the plan") for each in planned)))
    assert avro(again) == avro(requested.read_bytes())
    assert fields(again) == fields(requested.read_bytes())
    assert {each.base is None for each in planned} == {writer == "flink"}


def test_a_plan_with_full_paths_in_any_order_gives_names_in_merge_order() -> None:
    """Fact HF3."""
    operation = Operation("p=1", "0-0", None, tuple(PinnedFile(log_name("0-0", t, v, "0-0-0"), 1) for t, v in LOGS), "out")
    data = encode_plan(Plan("9" * 17, (operation,)))
    (planned,) = decode_plan(data, "plan")
    assert [name.partition("_")[2] for name in planned.logs] == [f"{t}_".rstrip("_") + f".log.{v}_0-0-0" for t, v in sorted(LOGS)]
    full = avro(data)["operations"][0]
    full["deltaFilePaths"] = [f"file:/some/where/p=1/{name}" for name in reversed(full["deltaFilePaths"])]
    full["dataFilePath"] = f"s3a://bucket/t/p=1/{base_name('0-0', '1-2-3', '2' * 17)}"
    other = io.BytesIO()
    fastavro.writer(other, fastavro.reader(io.BytesIO(data)).writer_schema, [avro(data) | {"operations": [full]}])
    (decoded,) = decode_plan(other.getvalue(), "plan")
    assert decoded.logs == planned.logs
    assert decoded.base == base_name("0-0", "1-2-3", "2" * 17)


LOGS = [("3" * 17, 10), ("3" * 17, 9), ("1" * 17, 1)]


@pytest.mark.parametrize(
    ("base", "logs", "read", "write"),
    [(5 << 20, [1 << 20, 1], 6, 5), (0, [(1 << 20) - 1], 0, 120), (None, [3 << 20], 3, 120), ((1 << 20) - 1, [1], 1, 0)],
)
def test_metrics_of_a_plan_are_whole_megabytes(base: int | None, logs: list[int], read: int, write: int) -> None:
    pinned = tuple(PinnedFile(log_name("0-0", str(n) * 17, 1, "0-0-0"), size) for n, size in enumerate(logs, 2))
    old = PinnedFile(base_name("0-0", "0-0-0", "1" * 17), base) if base is not None else None
    (operation,) = avro(encode_plan(Plan("9" * 17, (Operation("", "0-0", old, pinned, "out"),))))["operations"]
    assert operation["metrics"] == {
        "TOTAL_LOG_FILES": len(logs),
        "TOTAL_LOG_FILES_SIZE": sum(logs),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_IO_WRITE_MB": write,
        "TOTAL_IO_MB": read + write,
    }
    assert operation["baseInstantTime"] == ("1" * 17 if base is not None else "2" * 17)


def compacted_as(table: str, stat: Mapping[str, Any], planned: Sequence[Any]) -> OperationResult:
    """What a compactor of ours would have reported for that file of Spark's."""
    (its,) = [each for each in planned if each.file_id == stat["fileId"] and each.partition == stat["partitionPath"]]
    sizes = dict.fromkeys([its.base, *its.logs], 1) | sizes_of(table)
    operation = its.pin(sizes, stat["path"].rpartition("/")[2])
    file = DataFile(operation.path, stat["fileSizeInBytes"], "", "")
    counts = (stat[key] for key in ("numWrites", "numInserts", "numUpdateWrites", "numDeletes"))
    return OperationResult(operation, file, *counts, stat["totalLogRecords"], stat["totalLogBlocks"])


@pytest.mark.parametrize("name", ["h120_v9_mor_compaction_done", "h120_v9_mor_archived", "h120_v9_mor_clean"])
def test_the_commit_of_a_compaction_has_the_fields_of_spark(name: str, tmp_path: Path) -> None:
    table = unpack(name, tmp_path)
    for requested in timeline_files(table, "*.compaction.requested"):
        instant = requested.name.partition(".")[0]
        (commit,) = timeline_files(table, f"{instant}_*.commit")
        theirs = avro(commit.read_bytes())
        planned = decode_plan(requested.read_bytes(), "plan")
        stats = [stat for each in theirs["partitionToWriteStats"].values() for stat in each]
        finished = [compacted_as(table, stat, planned) for stat in stats]
        data = encode_compaction(instant, finished, theirs["extraMetadata"]["schema"])
        ours = avro(data)
        assert fields(data) == fields(commit.read_bytes())
        assert_same_but(ours, theirs, {"partitionToWriteStats"})
        found = [stat for each in ours["partitionToWriteStats"].values() for stat in each]
        for one, other in zip(found, stats, strict=True):
            assert_same_but(one, other, MEASURED)
        commit.write_bytes(data)
    assert comparable(read_by_hudi_rs(Path(table)).to_pylist()) == comparable(expected_rows(name).to_pylist())
    assert_as_spark(table, name)


def assert_as_spark(table: str, name: str) -> None:
    rows = hudi.open_table(table).scan(meta_columns=True).to_table()
    assert comparable(rows.to_pylist()) == comparable(expected_rows(name).select(rows.column_names).to_pylist())


def test_the_commit_of_a_first_base_file_has_no_file_before_it() -> None:
    log = PinnedFile(log_name("0-0", "1" * 17, 1, "0-0-0"), 70)
    operation = Operation("p", "0-0", None, (log,), base_name("0-0", "0-0-0", "2" * 17))
    file = DataFile(operation.path, 500, "sha", "")
    data = encode_compaction("2" * 17, [OperationResult(operation, file, 3, 3, 0, 0, 4, 2)], "{}")
    assert decode_commit(data, "commit").files == {"p": [WrittenFile(f"p/{operation.output}", 500, 3, 0)]}
    (stat,) = avro(data)["partitionToWriteStats"]["p"]
    assert (stat["prevCommit"], stat["prevBaseFile"], stat["path"]) == ("null", None, f"p/{operation.output}")
    assert (stat["numWrites"], stat["totalLogFilesCompacted"], stat["totalLogSizeCompacted"]) == (3, 1, 70)
    with pytest.raises(ValueError, match="not a base file of instant 333"):
        encode_compaction("3" * 17, [OperationResult(operation, file, 3, 3, 0, 0, 4, 2)], "{}")


def test_a_stat_without_a_path_belongs_to_no_file() -> None:
    data = encode_compaction("2" * 17, [], "{}")
    stats = {"p": [{"path": None, "numWrites": 0}, {"path": "p/x", "numWrites": 2, "fileSizeInBytes": None}]}
    other = io.BytesIO()
    fastavro.writer(other, fastavro.reader(io.BytesIO(data)).writer_schema, [avro(data) | {"partitionToWriteStats": stats}])
    assert decode_commit(other.getvalue(), "commit").files == {"p": [WrittenFile("p/x", 0, 2, 0)]}


def test_cleanings_of_spark_are_read_and_written_again_with_the_same_fields(tmp_path: Path) -> None:
    table = unpack("h120_v9_mor_clean", tmp_path)
    (requested,), (completed,) = timeline_files(table, "*.clean.requested"), timeline_files(table, "*.clean")
    plan = decode_clean_plan(requested.read_bytes(), "plan", "20261120235339566")
    assert avro(encode_clean_plan(plan, "file:/tmp/lake/warehouse/t/h120_v9_mor_clean")) == avro(requested.read_bytes())
    cleaned = decode_clean(completed.read_bytes(), "clean")
    again = encode_clean(cleaned)
    assert_same_but(avro(again), avro(completed.read_bytes()), {"timeTakenInMillis"})
    assert fields(again) == fields(completed.read_bytes())
    assert cleaned.files == plan.files
    assert len(cleaned.files[""]) == 4
    assert (cleaned.instant, cleaned.earliest, plan.earliest_action) == ("20261120235339566", "20261120235332801", "commit")
    completed.write_bytes(again)
    assert comparable(read_by_hudi_rs(Path(table)).to_pylist()) == comparable(expected_rows("h120_v9_mor_clean").to_pylist())


def test_a_cleaning_by_versions_names_no_instant_to_retain() -> None:
    cleaned = Cleaned("1" * 17, "KEEP_LATEST_FILE_VERSIONS", "", "", {"": ["x"], "a=1/b=2": ["y", ".z"]})
    plan = avro(encode_clean_plan(cleaned, "s3://bucket/t"))
    assert plan["earliestInstantToRetain"] is None
    paths = [file["filePath"] for files in plan["filePathsToBeDeletedPerPartition"].values() for file in files]
    assert paths == ["s3://bucket/t/x", "s3://bucket/t/a=1/b=2/y", "s3://bucket/t/a=1/b=2/.z"]
    assert avro(encode_clean(cleaned))["totalFilesDeleted"] == 3
    assert decode_clean(encode_clean(cleaned), "clean").files == {"": ("x",), "a=1/b=2": ("y", ".z")}


def test_a_savepoint_of_spark_is_read_and_written_again_with_the_same_fields(tmp_path: Path) -> None:
    table = unpack("h120_v9_mor_savepoint", tmp_path)
    (completed,) = timeline_files(table, "*.savepoint")
    saved = decode_savepoint(completed.read_bytes(), "savepoint")
    again = encode_savepoint(user=saved.user, at_ms=saved.at_ms, comment=saved.comment, files=saved.files)
    assert avro(again) == avro(completed.read_bytes())
    assert fields(again) == fields(completed.read_bytes())
    assert len(saved.files["a"]) == 3
    completed.write_bytes(again)
    assert comparable(read_by_hudi_rs(Path(table)).to_pylist()) == comparable(expected_rows("h120_v9_mor_savepoint").to_pylist())


UNDONE = [Instant("20261121003000000", "deltacommit", State.COMPLETED, "20261121003000001")]
UNDONE += [Instant("20261121003000002", "commit", State.COMPLETED, "20261121003000003")]


def test_a_restore_names_what_it_undid_newest_first() -> None:
    plan = avro(encode_restore_plan("20261121002000000", UNDONE))
    infos = [
        {"commitTime": "20261121003000002", "action": "commit"},
        {"commitTime": "20261121003000000", "action": "deltacommit"},
    ]
    assert plan == {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": "20261121002000000"}
    restored = avro(encode_restore("20261121004000000", UNDONE, {UNDONE[0].time: ["a=1/x", "a=1/.y", "z"]}))
    assert restored["restoreInstantInfo"] == infos
    assert restored["instantsToRollback"] == ["20261121003000002", "20261121003000000"]
    (rollback,) = restored["hoodieRestoreMetadata"]["20261121003000000"]
    assert rollback["totalFilesDeleted"] == 3
    assert {name: each["successDeleteFiles"] for name, each in rollback["partitionMetadata"].items()} == {
        "a=1": ["x", ".y"],
        "": ["z"],
    }
    assert restored["hoodieRestoreMetadata"]["20261121003000002"][0]["partitionMetadata"] == {}


def test_the_rollbacks_of_a_restore_have_the_fields_of_a_rollback_of_spark(tmp_path: Path) -> None:
    table = unpack("h120_v9_mor_rollback", tmp_path)
    (completed,) = timeline_files(table, "*.rollback")
    theirs: Any = fastavro.reader(io.BytesIO(completed.read_bytes())).writer_schema
    ours: Any = fastavro.reader(io.BytesIO(encode_restore("1" * 17, UNDONE, {}))).writer_schema
    _, rollback = ours["fields"][3]["type"]["values"]["items"]
    assert without_hints(rollback) == without_hints(theirs)


def test_a_restore_has_the_fields_of_hudi_1_2() -> None:
    """Of its classes HoodieRestorePlan and HoodieRestoreMetadata; no golden table has a restore."""
    plan: Any = fastavro.reader(io.BytesIO(encode_restore_plan("1" * 17, UNDONE))).writer_schema
    assert [(each["name"], without_hints(each["type"])) for each in plan["fields"][1:]] == [
        ("version", ["int", "null"]),
        ("savepointToRestoreTimestamp", ["null", {"type": "string"}]),
    ]
    info = without_hints(plan["fields"][0]["type"]["items"])
    assert [each["name"] for each in info["fields"]] == ["commitTime", "action"]
    names = [
        "startRestoreTime",
        "timeTakenInMillis",
        "instantsToRollback",
        "hoodieRestoreMetadata",
        "version",
        "restoreInstantInfo",
    ]
    assert fields(encode_restore("1" * 17, UNDONE, {})) == names


def without_hints(schema: Any) -> Any:
    """Names and types alone, each record written out once."""
    if isinstance(schema, dict):
        return {key: without_hints(value) for key, value in schema.items() if key not in ("doc", "default", "avro.java.string")}
    if isinstance(schema, list):
        return [without_hints(each) for each in schema]
    return schema


def test_a_table_with_every_service_on_its_timeline_is_read_as_before(tmp_path: Path) -> None:
    """hudi-rs lists the timeline and must get past each of them; we too."""
    name = "h120_v8_mor_compaction_pending"
    table = unpack(name, tmp_path)
    timeline = Path(table) / ".hoodie/timeline"
    (requested,) = timeline_files(table, "*.compaction.requested")
    planned = decode_plan(requested.read_bytes(), "plan")
    plan = Plan(requested.name.partition(".")[0], tuple(each.pin(sizes_of(table), "x") for each in planned))
    (saved,) = {each.base_instant for each in planned}
    cleaned = Cleaned("20261121005000000", "KEEP_LATEST_COMMITS", saved, saved, {"": ["gone"]}, "deltacommit")
    files = {
        requested.name: encode_plan(plan),
        "20261121005000000.clean.requested": encode_clean_plan(cleaned, f"file://{table}"),
        "20261121005000000.clean.inflight": b"",
        "20261121005000000_20261121005000001.clean": encode_clean(cleaned),
        f"{saved}.savepoint.inflight": b"",
        f"{saved}_20261121005000002.savepoint": encode_savepoint(user="u", at_ms=1, comment="c", files={"": ["a", ".b"]}),
        "20261121005000003.restore.requested": encode_restore_plan(saved, UNDONE),
        "20261121005000003.restore.inflight": b"",
        "20261121005000003_20261121005000004.restore": encode_restore("20261121005000003", UNDONE, {}),
    }
    for file, content in files.items():
        (timeline / file).write_bytes(content)
    assert comparable(read_by_hudi_rs(Path(table)).to_pylist()) == comparable(expected_rows(name).to_pylist())
    assert_as_spark(table, name)


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-40], lambda data: data[:300], lambda data: b"{}", lambda data: OTHER]
)
def test_an_error_about_another_kind_of_file_names_its_path(damage: Any) -> None:
    cleaned = Cleaned("1" * 17, "KEEP_LATEST_COMMITS", "", "", {"": ["x"]})
    plan = encode_plan(
        Plan("9" * 17, (Operation("", "0-0", None, (PinnedFile(log_name("0-0", "1" * 17, 1, "0-0-0"), 1),), "o"),))
    )
    with pytest.raises(CorruptFileError, match=r"the/path is not a HoodieCompactionPlan.*Restore"):
        decode_plan(damage(plan), "the/path")
    with pytest.raises(CorruptFileError, match="the/path is not a HoodieCleanMetadata"):
        decode_clean(damage(encode_clean(cleaned)), "the/path")
    with pytest.raises(CorruptFileError, match="the/path is not a HoodieCleanerPlan"):
        decode_clean_plan(damage(encode_clean_plan(cleaned, "")), "the/path", "1")


OTHER = encode_restore_plan("1" * 17, UNDONE)
