"""One attempt at an operation by a compactor: the table's folder, what its properties say, and the merge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.commitlog.same_table import check_there
from headgate_tables.errors import MissingFileError
from headgate_tables.face.operation import Operation, OperationResult
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from headgate_tables.hudi.services.compaction.execution import compact_slice
from headgate_tables.hudi.table_properties import properties_of
from headgate_tables.storage.store import Store


@dataclass(frozen=True, slots=True)
class SliceCompaction:
    """A ``CompactionTask``. ``process``: whose stage folder in ``epoch`` the output waits in. ``settings``: texts by key."""

    store: Store
    definition: Definition
    operation: Operation
    instant: str
    epoch: int
    process: str
    attempt: int
    settings: Mapping[str, str]

    def base_rows(self) -> int:
        """Rows of the base file; 0 when it is missing or damaged, which the merge reports."""
        base = self.operation.base
        if base is None:
            return 0
        try:
            with self.store.open_input(self.operation.at(base.name)) as file:
                return int(pq.read_metadata(file).num_rows)
        except (OSError, pa.ArrowInvalid):
            return 0

    def run(self, progress: Callable[[int], None]) -> OperationResult:
        """See ``compact_slice``. Raises TableGoneError or TableDroppedError where the whole table is missing, not one file."""
        try:
            return self._compact(progress)
        except MissingFileError:
            check_there(self.store, LOG_LAYOUT)
            raise

    def _compact(self, progress: Callable[[int], None]) -> OperationResult:
        return compact_slice(
            self.store,
            self.definition,
            layout_in(self.store, self.definition),
            self.operation,
            self.instant,
            stage=LOG_LAYOUT.stage_folder(self.epoch, self.process) if self.store.stages else "",
            settings=TableSettings.from_texts(self.settings),
            progress=progress,
            attempt=str(self.attempt),
        )


def layout_in(store: Store, definition: Definition) -> Layout:
    """According to the table's properties; while a crash has left none, as they will be."""
    where = f"{store.url}/{PROPERTIES_PATH}"
    try:
        properties = parse(store.get(PROPERTIES_PATH).to_pybytes(), where)
    except FileNotFoundError:
        properties = properties_of(definition)
    return Layout.from_properties(properties, where)
