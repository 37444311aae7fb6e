"""A planned compaction: HoodieCompactionPlan in ``T.compaction.requested``.

Java reads every pending plan when it builds a file-system view, so the file is never empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from headgate_tables.commitlog.fields import Fields, Json, list_of, nullable, text, texts
from headgate_tables.face.operation import Operation, PinnedFile, Plan
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.avro_container import STRING, VERSION, Container, array, decode, mapping, optional, record

_BARE_NAMES = 2
"""The version of plans that name files without their folders; version 1 has full paths."""
_MB = 1 << 20
_NO_BASE_WRITES = 120 * _MB
"""The size that Hudi assumes for a first base file (hoodie.parquet.max.file.size)."""


@cache
def _container() -> Container:
    operation = record(
        "HoodieCompactionOperation",
        [
            {"name": "baseInstantTime", "type": ["null", STRING]},
            optional("deltaFilePaths", array(STRING)),
            optional("dataFilePath", STRING),
            {"name": "fileId", "type": ["null", STRING]},
            optional("partitionPath", STRING),
            optional("metrics", mapping("double")),
            optional("bootstrapFilePath", STRING),
        ],
    )
    strategy = record(
        "HoodieCompactionStrategy", [optional("compactorClassName", STRING), optional("strategyParams", mapping(STRING)), VERSION]
    )
    fields = [optional("operations", array(operation)), optional("extraMetadata", mapping(STRING)), VERSION]
    fields += [optional("strategy", strategy), {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False}]
    return Container(record("HoodieCompactionPlan", [*fields, optional("missingSchedulePartitions", array(STRING))]))


def encode_plan(plan: Plan) -> bytes:
    """The content of ``T.compaction.requested``, as Spark-Hudi writes it for table version 8."""
    content: dict[str, Json] = {
        "operations": [_encode(operation) for operation in plan.operations],
        "extraMetadata": {},
        "version": _BARE_NAMES,
        "strategy": None,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": [],
    }
    return _container().encode(content)


def _encode(operation: Operation) -> dict[str, Json]:
    base = operation.base
    return {
        "baseInstantTime": base_instant(operation),
        "deltaFilePaths": [log.name for log in operation.logs],
        "dataFilePath": base.name if base else None,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": _metrics(operation),
        "bootstrapFilePath": None,
    }


def base_instant(operation: Operation) -> str:
    """The slice's instant: of its base file, or of its first log without one. Raises ValueError for names of other kinds."""
    named = parse_base_name(operation.base.name) if operation.base else parse_log_name(operation.logs[0].name)
    if named is None:
        raise ValueError(f"not the names of a file slice: {operation}")
    return named.instant


def _metrics(operation: Operation) -> dict[str, float]:
    """Whole megabytes, rounded down, and bytes of logs (Hudi: FileSliceMetricUtils)."""
    read = operation.input_bytes // _MB
    write = (operation.base.size if operation.base and operation.base.size else _NO_BASE_WRITES) // _MB
    return {
        "TOTAL_LOG_FILES": float(len(operation.logs)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(sum(log.size for log in operation.logs)),
        "TOTAL_IO_WRITE_MB": float(write),
    }


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One operation of another program's plan: names without folders, ``logs`` in merge order, no sizes."""

    partition: str
    file_id: str
    base_instant: str
    base: str | None
    logs: tuple[str, ...]

    def pin(self, sizes: Mapping[str, int], output: str) -> Operation:
        """The operation as one of ours. ``sizes``: bytes by name. Raises KeyError for a file that is not in it."""
        base = PinnedFile(self.base, sizes[self.base]) if self.base else None
        return Operation(self.partition, self.file_id, base, tuple(PinnedFile(log, sizes[log]) for log in self.logs), output)


def decode_plan(data: bytes, path: str) -> tuple[PlannedSlice, ...]:
    """The operations of any plan of Hudi, in its order. Raises CorruptFileError."""
    return decode(data, path, ["HoodieCompactionPlan"], _decode)


def _decode(plan: Fields) -> tuple[PlannedSlice, ...]:
    operations = plan.required("operations", _read_operations)
    return tuple(operations or ())


def _read_operation(value: object) -> PlannedSlice:
    fields = Fields(value)
    base = fields.required("dataFilePath", nullable(text))
    logs = [_name(path) for path in fields.required("deltaFilePaths", nullable(texts)) or ()]
    return PlannedSlice(
        fields.required("partitionPath", nullable(text)) or "",
        fields.required("fileId", text),
        fields.required("baseInstantTime", nullable(text)) or "",
        _name(base) if base else None,
        tuple(sorted(logs, key=_merge_order)),
    )


_read_operations = nullable(list_of(_read_operation))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _merge_order(name: str) -> tuple[str, int, str]:
    """Instant, version, token (fact HF3)."""
    log = parse_log_name(name)
    if log is None:
        raise ValueError(f"{name!r} is not a log file")
    return log.instant, log.version, log.token
