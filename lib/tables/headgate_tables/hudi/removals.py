"""Commits that take rows out of a table and read none. ``TableOwner`` inherits them."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from headgate_tables.errors import OptionError
from headgate_tables.face.results import CommitResult
from headgate_tables.hudi.keys.partition_path import is_partition_path
from headgate_tables.hudi.partition_file import partition_file
from headgate_tables.hudi.transaction import Transaction
from headgate_tables.name_lists import names_in
from headgate_tables.storage.store import Store


class RowRemovals(ABC):
    """Each takes file groups out of the table; their files stay until a cleaning."""

    _store: Store

    @abstractmethod
    def transaction(self, *, tidy: bool = True) -> Transaction:
        """Begins one."""

    def check_partitions(self, partitions: Collection[str]) -> None:
        """Raises OptionError for one that the table never had. ``partitions``: paths from the table's root."""
        for each in names_in(partitions, "partitions"):
            if not is_partition_path(each) or self._store.size(partition_file(each)) is None:
                raise OptionError(
                    f"{self._store.url} has no partition {each[:200]!r}",
                    fix="Name partitions by their paths, as files have them.",
                )

    def delete_partitions(self, partitions: Collection[str]) -> CommitResult:
        """Removes all rows of these partitions in one commit that reads no row; "" as its instant when there are none.

        ``partitions``: paths from the table's root, as in file names. Files stay until a cleaning, for readers of the past.
        Raises OptionError for one that the table never had, TransactionError while a transaction or a compaction is open, and as
        ``transaction``.
        """
        named = names_in(partitions, "partitions")
        self.check_partitions(named)
        return self._remove(named)

    def _remove(self, partitions: Collection[str]) -> CommitResult:
        with self.transaction() as transaction:
            transaction.announce_bulk_load("delete_partition", partitions)
            return transaction.commit()

    def truncate(self) -> CommitResult:
        """Removes all rows in one commit that reads none; "" as its instant when there are none. Otherwise as
        ``delete_partitions``.
        """
        with self.transaction() as transaction:
            transaction.announce_bulk_load("insert_overwrite_table")
            return transaction.commit()
