"""Opens an existing table."""

from collections.abc import Mapping

from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.face.results import DropResult
from headgate_tables.hudi.guard import MetadataTable
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.opened import Opened
from headgate_tables.hudi.services import dropping
from headgate_tables.hudi.table import Table
from headgate_tables.storage.open import open_store
from headgate_tables.system import System


def finish_drop(url: str, *, storage_options: Mapping[str, str] | None = None, system: System | None = None) -> DropResult | None:
    """Deletes what is left of a table that was dropped at this place, perhaps by another process; None for any other place.

    Returns the same when nothing is left to do. Raises StoreUnavailableError, StoreDeniedError; the rest is done the next time.
    """
    system = system or System.real()
    return dropping.finish(open_store(url, storage_options, system.ids, anchor=LOG_LAYOUT.root), system.clock)


def open_table(
    url: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    take_over: bool = False,
    metadata_table: MetadataTable = "refuse",
    system: System | None = None,
    owner: OwnerProcess | None = None,
    name: str = "",
) -> Table:
    """Opens a table. Nothing is written before the first upsert, delete or transaction.

    ``take_over``: write even when a cluster owns the table. ``metadata_table``: what to do when a Spark job has made one,
    which would not see our files: ``refuse`` to write, or ``remove`` it before the next commit.
    ``owner``: how others see this handle, by default as a library process; a cluster gives ``OwnerProcess("cluster", host, pid,
    address)``, may then take tables from other clusters, and keeps the library away from its own. ``name``: what the handle calls
    the table; "" for hoodie.table.name, which a catalog's other name for the table does not change (rule D11).

    Raises NotATableError, TableDroppedError, UnsupportedTableError, CorruptFileError.
    """
    system = system or System.real()
    store = open_store(url, storage_options, system.ids, anchor=LOG_LAYOUT.root)
    return Table(Opened(store, system, owner, take_over=take_over, called=name), metadata_table)
