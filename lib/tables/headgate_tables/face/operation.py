"""What a compaction plan pins: file slices by the exact names and sizes of their files (rules TM2, W4)."""

from dataclasses import dataclass

from headgate_tables.commitlog.fields import Json, UnfitError, json_list, list_of, nullable, number, text
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a slice, by its name without folder, and its bytes."""

    name: str
    size: int


def _read_pinned(value: object) -> PinnedFile:
    name, size = json_list(value)
    return PinnedFile(text(name), number(size))


_read_base = nullable(_read_pinned)
_read_logs = list_of(_read_pinned)


@dataclass(frozen=True, slots=True)
class Operation:
    """One file slice that becomes a base file. ``logs`` in merge order; ``output`` is the new base file's name (rule W4).

    ``merged_log``: the name of a log file; then the compaction may be a minor one, which copies the base file as ``output`` and
    leaves what the logs say in that file. "": it may not.
    """

    partition: str
    file_id: str
    base: PinnedFile | None
    logs: tuple[PinnedFile, ...]
    output: str
    merged_log: str = ""

    @property
    def path(self) -> str:
        """Where the new base file lies, from the table's root."""
        return self.at(self.output)

    @property
    def names(self) -> list[str]:
        """Of base and logs, without folder."""
        return [*([self.base.name] if self.base else []), *(log.name for log in self.logs)]

    @property
    def outputs(self) -> list[str]:
        """Where the files lie that it may create."""
        return [self.path, *([self.at(self.merged_log)] if self.merged_log else [])]

    @property
    def input_bytes(self) -> int:
        """Bytes of base and logs."""
        return (self.base.size if self.base else 0) + sum(log.size for log in self.logs)

    def at(self, name: str) -> str:
        """Path of a file of the slice, from the table's root."""
        return f"{self.partition}/{name}" if self.partition else name

    def encode(self) -> list[Json]:
        """Its JSON in a PLAN slot."""
        base: list[Json] | None = [self.base.name, self.base.size] if self.base else None
        logs: list[Json] = [[log.name, log.size] for log in self.logs]
        return [self.partition, self.file_id, base, logs, self.output, *([self.merged_log] if self.merged_log else [])]

    @classmethod
    def decode(cls, content: Json) -> "Operation":
        """From a PLAN slot. Raises CorruptFileError."""
        try:
            partition, file_id, base, logs, output, *minor = json_list(content)
            (merged_log,) = minor or [""]
            return cls(text(partition), text(file_id), _read_base(base), tuple(_read_logs(logs)), text(output), text(merged_log))
        except (UnfitError, ValueError) as error:
            raise CorruptFileError(
                f"a PLAN slot holds an operation that cannot be read: {content}",
                fix="Upgrade headgate-tables to the version that wrote it, or restore the log from a copy of the table.",
            ) from error


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction that is planned and neither done nor cancelled."""

    instant: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class OperationResult:
    """A finished operation: ``file`` is in place and durable under its fixed name, and so is ``log`` after a minor compaction.

    Counts of rows: ``rows`` in the new file; ``inserts`` of keys that the base did not have, ``updates`` of those that it had,
    ``deletes`` of base rows that are gone; ``log_rows`` and ``log_blocks`` as read.
    """

    operation: Operation
    file: DataFile
    rows: int
    inserts: int
    updates: int
    deletes: int
    log_rows: int
    log_blocks: int
    log: DataFile | None = None

    @property
    def files(self) -> list[DataFile]:
        """The files that it created."""
        return [self.file, *([self.log] if self.log is not None else [])]

    @property
    def left_out(self) -> list[str]:
        """Paths that it might have created and did not, from the table's root."""
        made = {file.path for file in self.files}
        return [path for path in self.operation.outputs if path not in made]
