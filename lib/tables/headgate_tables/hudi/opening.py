"""Opens an existing table."""

from collections.abc import Callable, Mapping

from headgate_tables.commitlog.records import Holder
from headgate_tables.hudi.guard import MetadataTable
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.opened import Opened
from headgate_tables.hudi.table import Table
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import System


def open_table(
    url: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    take_over: bool = False,
    metadata_table: MetadataTable = "refuse",
    system: System | None = None,
    holder: Holder | None = None,
    wrap_store: Callable[[Store], Store] | None = None,
) -> Table:
    """Opens a table. Nothing is written before the first upsert, delete or transaction.

    ``take_over``: write even when a cluster owns the table. ``metadata_table``: what to do when a Spark job has made one,
    which would not see our files: ``refuse`` to write, or ``remove`` it before the next commit.
    ``holder``: how others see this handle, by default as a library process; a cluster gives ``Holder("cluster", host, pid,
    address)``, may then take tables from other clusters, and keeps the library away from its own. ``wrap_store``: everything
    goes through the store that it returns.

    Raises NotATableError, UnsupportedTableError, CorruptFileError.
    """
    system = system or System.real()
    store = open_store(url, storage_options, system.ids, anchor=LOG_LAYOUT.root)
    store = wrap_store(store) if wrap_store else store
    return Table(Opened(store, system, holder, take_over=take_over), metadata_table)
