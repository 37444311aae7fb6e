"""The content of a completed write: HoodieCommitMetadata as an Avro container."""

import base64
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from headgate_tables.commitlog.fields import Fields, Json, json_map, list_of, map_of, nullable, number, text, texts
from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.operation import OperationResult
from headgate_tables.hudi.log.names import parse_base_name
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, decode, mapping, optional, record
from headgate_tables.hudi.timeline.compaction_plan import base_instant

_DIGESTS_KEY = "headgate.sha256"
_DIGEST_BYTES = 16
_SHA256_DIGITS = 64
_LONGS_IN_ORDER = "numWrites numDeletes numUpdateWrites totalWriteBytes totalWriteErrors"
_LOG_LONGS = "totalLogRecords totalLogFiles totalUpdatedRecordsCompacted numInserts totalLogBlocks totalCorruptLogBlock"


def _write_stat_schema() -> dict[str, Json]:
    longs = [optional(name, "long") for name in _LONGS_IN_ORDER.split()]
    log_longs = [optional(name, "long") for name in [*_LOG_LONGS.split(), "totalRollbackBlocks", "fileSizeInBytes"]]
    runtime = record("HoodieRuntimeStats", [optional(n, "long") for n in ("totalScanTime", "totalCreateTime", "totalUpsertTime")])
    fields = [optional(name, STRING) for name in ("fileId", "path", "prevCommit")] + longs + [optional("partitionPath", STRING)]
    fields += [*log_longs, optional("logVersion", "int"), optional("logOffset", "long"), optional("baseFile", STRING)]
    fields += [optional("logFiles", array(STRING)), optional("cdcStats", mapping("long"))]
    fields += [optional("prevBaseFile", STRING), optional("minEventTime", "long"), optional("maxEventTime", "long")]
    fields += [optional("runtimeStats", runtime)]
    fields += [optional(name, "long") for name in ("totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted")]
    return record("HoodieWriteStat", [*fields, optional("tempPath", STRING), optional("numUpdates", "long")])


@cache
def _container(*, replacing: bool = False) -> Container:
    stats = mapping(array(_write_stat_schema()))
    fields = [optional("partitionToWriteStats", stats), optional("compacted", "boolean")]
    fields += [optional("extraMetadata", mapping(STRING)), VERSION, optional("operationType", STRING)]
    if not replacing:
        return Container(record("HoodieCommitMetadata", fields))
    fields += [optional("partitionToReplaceFileIds", mapping(array(STRING)))]
    return Container(record("HoodieReplaceCommitMetadata", fields))


@cache
def _requested_replace() -> Container:
    fields = [optional("operationType", STRING), optional("extraMetadata", mapping(STRING)), VERSION]
    return Container(record("HoodieRequestedReplaceMetadata", fields))


_ZERO_COUNTS = (
    *_LONGS_IN_ORDER.split(),
    *(name for name in _LOG_LONGS.split() if name != "totalLogFiles"),
    *("totalRollbackBlocks", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted", "numUpdates"),
)
_NO_TIMES: Json = {"totalScanTime": 0, "totalCreateTime": 0, "totalUpsertTime": 0}


def _encode_stat(file: WriteStat, instant: str) -> dict[str, Json]:
    """As Spark-Hudi fills it in version 8: a log names its own instant as previous commit, a new base file "null"."""
    is_log = file.log_version > 0
    stat: dict[str, Json] = dict.fromkeys(_ZERO_COUNTS, 0)
    stat |= {"fileId": file.file_id, "path": file.path, "prevCommit": instant if is_log else "null"}
    stat |= {"numWrites": file.rows, "numDeletes": file.deletes, "partitionPath": file.partition}
    stat |= {"numUpdateWrites" if is_log else "numInserts": file.rows}
    stat |= {"totalWriteBytes": file.size, "fileSizeInBytes": file.size}
    stat["runtimeStats"] = _NO_TIMES
    if is_log:
        stat |= {"logVersion": file.log_version, "logOffset": 0, "baseFile": "", "logFiles": [file.name]}
    return stat


class WrittenFile(NamedTuple):
    """A file that a commit of any program wrote.

    ``path``: from the table's root. ``size``: bytes. Numbers are 0 where the commit has none.
    """

    path: str
    size: int
    rows: int
    deletes: int

    @property
    def name(self) -> str:
        """The name without folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """A decoded commit, deltacommit or replacecommit.

    ``files``: those that it wrote, by partition. ``replaced``: file ids that left the table, by partition path.
    """

    files: Mapping[str, Sequence[WrittenFile]]
    operation: str
    extra: Mapping[str, str]
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def written(self) -> Iterator[WrittenFile]:
        """The files of all partitions."""
        return itertools.chain.from_iterable(self.files.values())

    def digests(self) -> dict[str, str]:
        """The first half of each file's SHA-256, as hex digits, by path; empty where the commit does not say."""
        paths = [file.path for file in self.written()]
        try:
            halves = base64.b64decode(self.extra.get(_DIGESTS_KEY, "")).hex()
        except ValueError:
            return {}
        digits = 2 * _DIGEST_BYTES
        if len(halves) != digits * len(paths):
            return {}
        return {path: halves[at * digits : (at + 1) * digits] for at, path in enumerate(paths)}


def encode_requested_replace(operation: str) -> bytes:
    """The content of an overwrite's ``T.replacecommit.requested``: other programs look there for a plan of a clustering."""
    return _requested_replace().encode({"operationType": operation})


def encode_commit(
    instant: str,
    statuses: Sequence[WriteStatus],
    schema: str,
    operation: str,
    extra: Mapping[str, str],
    replaced: Mapping[str, Sequence[str]] | None = None,
) -> bytes:
    """The content of the completed file. ``schema`` is the table's Avro schema without meta columns (fact HF6). ``replaced``: the
    file ids that a replacecommit takes out of the table, by partition; None for another action.
    """
    by_partition: dict[str, list[WriteStatus]] = {}
    for status in statuses:
        by_partition.setdefault(status.stat.partition, []).append(status)
    stats = {partition: [_encode_stat(each.stat, instant) for each in part] for partition, part in by_partition.items()}
    files = [status.file for part in by_partition.values() for status in part]
    return _encode(stats, False, {**extra, **_digests(files), "schema": schema}, operation, replaced)


def encode_compaction(instant: str, finished: Sequence[OperationResult], schema: str) -> bytes:
    """The content of a compaction's completed file ``T_C.commit``; arguments: see ``encode_commit``.

    Raises ValueError for a file without the instant in its name: no reader would take it for this compaction's.
    """
    by_partition: dict[str, list[OperationResult]] = {}
    for each in finished:
        name = parse_base_name(each.operation.output)
        if name is None or name.instant != instant:
            raise ValueError(f"{each.operation.output} is not a base file of instant {instant}")
        by_partition.setdefault(each.operation.partition, []).append(each)
    stats = {key: [stat for each in part for stat in _compaction_stats(each, instant)] for key, part in by_partition.items()}
    files = [file for part in by_partition.values() for each in part for file in each.files]
    return _encode(stats, True, {**_digests(files), "schema": schema}, "COMPACT")


def _digests(files: Sequence[DataFile]) -> dict[str, str]:
    """For ``verify``, which finds no other checksum of a file once its slot was deleted (rule G3). No other program looks at it.

    Half of each SHA-256, in the order in which the metadata have the files: nobody has to read the slot's longer ones twice.
    """
    halves = b"".join(bytes.fromhex(file.sha256)[:_DIGEST_BYTES] for file in files if len(file.sha256) == _SHA256_DIGITS)
    whole = len(halves) == _DIGEST_BYTES * len(files) > 0
    return {_DIGESTS_KEY: base64.b64encode(halves).decode()} if whole else {}


def _compaction_stats(compacted: OperationResult, instant: str) -> list[dict[str, Json]]:
    """Of the base file and, after a minor compaction, of its log file, whose rows were written before and count nowhere."""
    operation, log = compacted.operation, compacted.log
    if log is None:
        return [_compaction_stat(compacted)]
    written = WriteStat(operation.file_id, operation.partition, operation.merged_log, log.size, 0, 0, 1)
    return [_compaction_stat(compacted), _encode_stat(written, instant)]


def _compaction_stat(compacted: OperationResult) -> dict[str, Json]:
    """As Spark-Hudi fills it: the new base file and its inputs, without the fields of deltas."""
    operation, base = compacted.operation, compacted.operation.base
    stat: dict[str, Json] = dict.fromkeys(_ZERO_COUNTS, 0)
    stat |= {"fileId": operation.file_id, "path": operation.path, "partitionPath": operation.partition}
    stat |= {"prevCommit": base_instant(operation) if base else "null", "prevBaseFile": base.name if base else None}
    stat |= {"numWrites": compacted.rows, "numInserts": compacted.inserts}
    stat |= {"numUpdateWrites": compacted.updates, "numDeletes": compacted.deletes}
    stat |= {"totalWriteBytes": compacted.file.size, "fileSizeInBytes": compacted.file.size}
    stat |= {"totalLogRecords": compacted.log_rows, "totalLogBlocks": compacted.log_blocks}
    stat["totalUpdatedRecordsCompacted"] = compacted.inserts + compacted.updates + compacted.deletes
    stat |= {"totalLogFilesCompacted": len(operation.logs), "totalLogSizeCompacted": sum(log.size for log in operation.logs)}
    stat["runtimeStats"] = _NO_TIMES
    return stat


def _encode(
    by_partition: Mapping[str, Sequence[Json]],
    compacted: bool,
    extra: Mapping[str, str],
    operation: str,
    replaced: Mapping[str, Sequence[str]] | None = None,
) -> bytes:
    content: dict[str, Json] = {"partitionToWriteStats": by_partition, "compacted": compacted, "extraMetadata": extra}
    content |= {"version": None, "operationType": operation}
    if replaced is None:
        return _container().encode(content)
    return _container(replacing=True).encode({**content, "partitionToReplaceFileIds": replaced})


def decode_commit(data: bytes, path: str) -> CommitMetadata:
    """Raises CorruptFileError for anything that is no Avro container with one record."""
    return decode(data, path, ["HoodieCommitMetadata", "HoodieReplaceCommitMetadata"], _decode)


def _decode(fields: Fields) -> CommitMetadata:
    stats = fields.required("partitionToWriteStats", _read_stats) or {}
    extra = fields.required("extraMetadata", _read_extra) or {}
    replaced = fields.optional("partitionToReplaceFileIds", _read_replaced)
    return CommitMetadata(
        # A stat without a path belongs to no file.
        {partition: [file for file in files if file.path] for partition, files in stats.items()},
        fields.required("operationType", nullable(text)) or "",
        {key: value for key, value in extra.items() if value is not None},
        replaced or {},
    )


def _read_stat(value: object) -> WrittenFile:
    stat = json_map(value)  # not Fields, which takes three times as long: a commit may have thousands of files
    return WrittenFile(
        text(stat["path"] or ""),
        number(stat["fileSizeInBytes"] or 0),
        number(stat["numWrites"] or 0),
        number(stat["numDeletes"] or 0),
    )


_read_stats = nullable(map_of(list_of(_read_stat)))
_read_extra = nullable(map_of(nullable(text)))
_read_replaced = nullable(map_of(texts))
