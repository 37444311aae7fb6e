"""Table handles on stores that tests have made."""

from headgate_tables import hudi
from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.hudi.guard import MetadataTable
from headgate_tables.hudi.opened import Opened
from headgate_tables.storage.store import Store
from headgate_tables.system import System


def open_on(
    store: Store,
    system: System | None = None,
    *,
    take_over: bool = False,
    metadata_table: MetadataTable = "refuse",
    owner: OwnerProcess | None = None,
    name: str = "",
) -> hudi.Table:
    """As ``open_table``, but on ``store`` instead of one that is made of a URL."""
    return hudi.Table(Opened(store, system or System.real(), owner, take_over=take_over, called=name), metadata_table)
