"""What a completed write holds: HoodieCommitMetadata as an Avro container (spec hudi-format 2.4, 2.5 and 11.1)."""

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from headgate_tables.errors import CorruptFileError

_NAMESPACE = "org.apache.hudi.avro.model"
_STRING = {"type": "string", "avro.java.string": "String"}
_LONGS_IN_ORDER = "numWrites numDeletes numUpdateWrites totalWriteBytes totalWriteErrors"
_DECODE_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError, RecursionError),
    *(StopIteration, EOFError, struct.error, zlib.error, SchemaParseException),
)
_LOG_LONGS = "totalLogRecords totalLogFiles totalUpdatedRecordsCompacted numInserts totalLogBlocks totalCorruptLogBlock"


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": f"{_NAMESPACE}.{name}", "fields": list(fields)}


def _write_stat_schema() -> dict[str, Any]:
    longs = [_optional(name, "long") for name in _LONGS_IN_ORDER.split()]
    log_longs = [_optional(name, "long") for name in [*_LOG_LONGS.split(), "totalRollbackBlocks", "fileSizeInBytes"]]
    runtime = _record(
        "HoodieRuntimeStats", [_optional(n, "long") for n in ("totalScanTime", "totalCreateTime", "totalUpsertTime")]
    )
    fields = (
        [_optional(name, _STRING) for name in ("fileId", "path", "prevCommit")] + longs + [_optional("partitionPath", _STRING)]
    )
    fields += [*log_longs, _optional("logVersion", "int"), _optional("logOffset", "long"), _optional("baseFile", _STRING)]
    fields += [
        _optional("logFiles", {"type": "array", "items": _STRING}),
        _optional("cdcStats", {"type": "map", "values": "long"}),
    ]
    fields += [_optional("prevBaseFile", _STRING), _optional("minEventTime", "long"), _optional("maxEventTime", "long")]
    fields += [
        _optional("runtimeStats", runtime),
        *(_optional(name, "long") for name in ("totalLogFilesCompacted", "totalLogReadTimeMs")),
    ]
    fields += [_optional("totalLogSizeCompacted", "long"), _optional("tempPath", _STRING), _optional("numUpdates", "long")]
    return _record("HoodieWriteStat", fields)


@cache
def _commit_schema() -> Any:
    stats = {"type": "map", "values": {"type": "array", "items": _write_stat_schema()}, "avro.java.string": "String"}
    fields = [
        _optional("partitionToWriteStats", stats),
        _optional("compacted", "boolean"),
        _optional("extraMetadata", {"type": "map", "values": _STRING, "avro.java.string": "String"}),
        {"name": "version", "type": ["int", "null"], "default": 1},
        _optional("operationType", _STRING),
    ]
    return fastavro.parse_schema(_record("HoodieCommitMetadata", fields))


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One data file of a commit, as Hudi counts it. ``log_version`` is 0 for a base file; sizes in bytes."""

    file_id: str
    partition: str
    name: str
    size: int
    rows: int
    deletes: int
    log_version: int = 0

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    def encode(self, instant: str) -> dict[str, Any]:
        """As Spark-Hudi fills it in version 8: a log names itself and its own instant, a new base file "null"."""
        is_log = self.log_version > 0
        stat: dict[str, Any] = dict.fromkeys(_ZERO_COUNTS, 0)
        stat |= {"fileId": self.file_id, "path": self.path, "prevCommit": instant if is_log else "null"}
        stat |= {"numWrites": self.rows, "numDeletes": self.deletes, "partitionPath": self.partition}
        stat |= {"numUpdateWrites" if is_log else "numInserts": self.rows}
        stat |= {"totalWriteBytes": self.size, "fileSizeInBytes": self.size}
        stat["runtimeStats"] = {"totalScanTime": 0, "totalCreateTime": 0, "totalUpsertTime": 0}
        if is_log:
            stat |= {"logVersion": self.log_version, "logOffset": 0, "baseFile": "", "logFiles": [self.name]}
        return stat


_SYNC = bytes(range(16))
"""What ends a block in a container; any 16 bytes."""

_ZERO_COUNTS = (
    *_LONGS_IN_ORDER.split(),
    *(name for name in _LOG_LONGS.split() if name != "totalLogFiles"),
    *("totalRollbackBlocks", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted", "numUpdates"),
)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """A completed commit, deltacommit or replacecommit, read back.

    ``stats`` maps a partition path to raw HoodieWriteStat records; ``replaced`` a partition path to file ids that left the table.
    """

    stats: Mapping[str, Sequence[Mapping[str, Any]]]
    operation: str
    extra: Mapping[str, str]
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)


def encode_commit(instant: str, stats: Sequence[WriteStat], schema: str, operation: str, extra: Mapping[str, str]) -> bytes:
    """The content of the completed file. ``schema`` is the table's Avro schema without meta columns (interop fact 3b)."""
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition, []).append(stat.encode(instant))
    record = {
        "partitionToWriteStats": by_partition,
        "compacted": False,
        "extraMetadata": {**extra, "schema": schema},
        "version": 1,
        "operationType": operation,
    }
    content = io.BytesIO()
    fastavro.schemaless_writer(content, _commit_schema(), record)
    return _header() + _varint(1) + _varint(content.tell()) + content.getvalue() + _SYNC


@cache
def _header() -> bytes:
    """An Avro container's first part: it holds the schema, which costs more to write than a commit does."""
    out = io.BytesIO()
    fastavro.writer(out, _commit_schema(), [], sync_marker=_SYNC)
    return out.getvalue()


def _varint(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    return out.getvalue()


def decode_commit(data: bytes, path: str) -> CommitMetadata:
    """Raises CorruptFileError for anything that is no Avro container with one record."""
    try:
        record: Any = next(iter(fastavro.reader(io.BytesIO(data))))
        return CommitMetadata(
            record["partitionToWriteStats"] or {},
            record["operationType"] or "",
            record["extraMetadata"] or {},
            record.get("partitionToReplaceFileIds") or {},
        )
    except _DECODE_ERRORS as error:
        raise CorruptFileError(
            f"{path} is no commit metadata: {error!r}", fix="Restore the file from a copy of the table."
        ) from error
