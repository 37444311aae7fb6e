"""An overwrite by this process, as tasks of Spark and their driver do it, without Spark."""

from __future__ import annotations

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import LoadMode, LoadTask
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import bulk_files


def overwrite(table: hudi.Table, rows: pa.Table, mode: LoadMode = "insert_overwrite") -> CommitResult:
    """Begins new file groups with these rows in one task, and takes the replaced ones out."""
    with table.transaction() as transaction:
        transaction.announce_bulk_load(mode)
        definition = table.definition
        assert definition is not None
        files = bulk_files(
            open_folder(table.url, None, System.real().ids),
            definition,
            LoadTask(transaction.instant, table.epoch, "f" * 32, 0),
            settings=table.settings.to_texts(),
            overwriting=True,
        )
        statuses = files.write(rows)[0] if rows.num_rows else []
        assert not transaction.find_false(statuses)
        transaction.add(statuses)
        return transaction.commit()
