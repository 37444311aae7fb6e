"""From what people write to where a table is: an address is taken as it is, a name is asked for."""

from headgate_cli.cluster import Access
from headgate_cli.options import storage_settings
from headgate_cli.table.storage import Place


def find_place(table: str, access: Access, storage: tuple[str, ...]) -> Place:
    """``table``: s3://…, file:///…, a path with a slash, or a name in the cluster. Raises HeadgateError, CommandError."""
    if "/" in table:
        return Place(table, storage_settings(storage))
    with access.connect() as cluster:
        return Place(cluster.table(table).info.url, storage_settings(storage))
