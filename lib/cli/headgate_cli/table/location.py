"""Finds a table's location: an address is used as it is; for a name, a coordinator is asked."""

from headgate_cli.cluster import Access
from headgate_cli.options import storage_settings
from headgate_cli.table.storage import Location


def locate_table(table: str, access: Access, storage: tuple[str, ...]) -> Location:
    """The location of ``table``: a URL, a path with a slash, or a name. Raises HeadgateError, CommandError."""
    if "/" in table:
        return Location(table, storage_settings(storage))
    with access.connect() as cluster:
        return Location(cluster.table(table).info.url, storage_settings(storage))
