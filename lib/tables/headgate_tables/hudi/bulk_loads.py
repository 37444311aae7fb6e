"""What a transaction of base files does to the file groups that are there: it wants none, or replaces some.

An overwrite begins new file groups in a ``replacecommit``, which names those that leave the table (Hudi: INSERT_OVERWRITE,
INSERT_OVERWRITE_TABLE, DELETE_PARTITION). Their files stay until a cleaning, for readers of the past. A rescale is one that
replaces all groups by another number of them with the same rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.records import DerivedFile
from headgate_tables.errors import OptionError, TransactionError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import LoadMode
from headgate_tables.hudi.bucket_rules import Rescale, hashing_config, hashing_path, keys_of
from headgate_tables.hudi.current_groups import overwritten_groups
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.definition_values import encode_groups
from headgate_tables.hudi.timeline.commit_metadata import encode_requested_replace
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import FileSystemView

_OPERATIONS: Mapping[LoadMode, str] = {
    "into_empty": "BULK_INSERT",
    "insert_overwrite": "INSERT_OVERWRITE",
    "insert_overwrite_table": "INSERT_OVERWRITE_TABLE",
    "delete_partition": "DELETE_PARTITION",
}
Replaced: TypeAlias = Mapping[str, Sequence[str]]
"""File ids that leave the table by an overwrite, by partition; empty if it meets none."""

DELTACOMMIT = "deltacommit"
REPLACECOMMIT = "replacecommit"


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """One load. ``look``: gives the view of this moment; ``partitions``: those that a ``delete_partition`` empties; ``rescale``:
    of an overwrite that changes the definition, also when it brings no file and takes none out.
    """

    mode: LoadMode
    definition: Definition
    url: str
    look: Callable[[], FileSystemView]
    partitions: Collection[str] = ()
    rescale: Rescale | None = None

    @property
    def overwrites(self) -> bool:
        """Whether it replaces file groups."""
        return self.mode != "into_empty"

    @property
    def action(self) -> str:
        """Of its instant."""
        return REPLACECOMMIT if self.overwrites else DELTACOMMIT

    @property
    def operation(self) -> str:
        """Hudi's name for it."""
        return _OPERATIONS[self.mode]

    def check(self, plans: Collection[str]) -> None:
        """Raises TransactionError for a table that the mode does not fit, OptionError for an unknown one. ``plans``: open
        compactions.
        """
        if self.mode not in _OPERATIONS:
            raise OptionError(f"mode={self.mode!r}", fix=f"Use one of {', '.join(_OPERATIONS)}.")
        if self.overwrites and plans:
            raise TransactionError(
                f"{self.url} has an open compaction ({min(plans)}), which may be of file groups that this would replace",
                fix="Let it finish (`headgate compact TABLE`), and overwrite then.",
            )
        if not self.overwrites:
            self._check_empty(self.look())

    def _check_empty(self, view: FileSystemView) -> None:
        if view.replaced() or next(view.groups(), None) is not None:
            raise TransactionError(
                f"{self.url} holds rows, or held rows that were replaced, and this load wants an empty table",
                fix="Load into a new table, write with upsert, or overwrite what is there.",
            )

    def pending_files(self, instant: str) -> list[DerivedFile]:
        """What shows that the load has begun."""
        requested = encode_requested_replace(self.operation) if self.overwrites else b""
        return [
            (Instant(instant, self.action, State.REQUESTED).path, requested),
            (Instant(instant, self.action, State.INFLIGHT).path, b""),
        ]

    def shown_files(self, instant: str) -> list[DerivedFile]:
        """What Hudi's programs have to know when the load is completed."""
        if self.rescale is None:
            return []
        content = hashing_config(self.definition, self.rescale.target, instant)
        return [(hashing_path(instant), content)] if content is not None else []

    def _takes_out(self, partition: str, touched: Collection[str]) -> bool:
        if self.rescale is not None:
            return self.rescale.scale.is_about(partition)
        return self.mode == "insert_overwrite_table" or partition in touched

    def replaced(self, statuses: Sequence[WriteStatus]) -> Replaced:
        """What an overwrite takes out; ``statuses``: what the load wrote."""
        touched = {status.stat.partition for status in statuses} | set(self.partitions)
        found: dict[str, list[str]] = {}
        for group in self.look().groups():
            if self._takes_out(group.partition, touched):
                found.setdefault(group.partition, []).append(group.file_id)
        return found

    def config(self, instant: str, statuses: Sequence[WriteStatus], replaced: Replaced) -> dict[str, Json]:
        """The definition's keys that an overwrite changes: which file groups writers go on with."""
        if self.rescale is not None:
            return keys_of(self.definition, self.rescale.target)
        gone = [(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids]
        written = [(status.stat.partition, status.stat.file_id) for status in statuses]
        return {"groups": encode_groups(overwritten_groups(self.definition, instant, gone, written))}
