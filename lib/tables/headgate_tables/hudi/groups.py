"""Which file group a bucket's rows go to, and whether a new group may begin with a base file."""

from collections.abc import Callable

from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.partition_file import is_usable, partition_file
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import Store


class GroupIds:
    """File ids of one table's buckets (rule FI1): existing ones stay, new ones are computed, replaced ones never come back.

    ``load`` has to come before the first claim; it lists all folders. An owner that only commits files of others skips it
    (rule RO6, test_ro6_a_handle_that_only_commits_lists_no_data_folder).
    """

    def __init__(self, definition: Definition, store: Store, view: Callable[[], FileSystemView]) -> None:
        self._definition = definition
        self._store = store
        self._look = view
        self._view: FileSystemView | None = None
        self._ids: dict[tuple[str, int], str] = {}
        self._begun: dict[tuple[str, int], set[str]] = {}
        self._partitions: set[str] = set()
        self._existing: set[tuple[str, int]] = set()

    def load(self) -> None:
        """Finds out which groups exist, once."""
        if self._view is not None:
            return
        view = self._look()
        for group in view.groups():
            self._ids[group.partition, bucket_of(group.file_id)] = group.file_id
            self._partitions.add(group.partition)
        self._existing.update(self._ids)
        self._view = view

    def look(self) -> FileSystemView:
        """The view of this moment."""
        return self._look()

    def claim(self, partition: str, bucket: int, instant: str, *, alone: bool) -> tuple[str, bool]:
        """The bucket's file id, and whether ``instant`` may write its base file.

        Only a group without any file begins with one, and only in the oldest open transaction (``alone``): a base file
        hides what an older instant that completes later puts beside it.
        """
        key = (partition, bucket)
        if key not in self._ids:
            self._ids[key] = self._new_id(partition, bucket)
        if key in self._existing:
            return self._ids[key], False
        # Every instant that writes is noted: a base file beside a log of its own instant would count as older than that log
        # (test_a_group_that_has_a_log_of_the_transaction_gets_no_base_file_of_it).
        writers = self._begun.setdefault(key, set())
        begins = not writers
        writers.add(instant)
        return self._ids[key], begins and alone

    def commit(self, partitions_and_buckets: list[tuple[str, int]], instant: str) -> None:
        """Notes that these groups have files of the completed ``instant``."""
        self._existing.update(partitions_and_buckets)
        self._partitions.update(partition for partition, _ in partitions_and_buckets)
        self.forget(instant)

    def forget(self, instant: str) -> None:
        """Notes that the instant, committed or rolled back, begins no group any more."""
        for writers in self._begun.values():
            writers.discard(instant)

    def knows_partition(self, partition: str) -> bool:
        """Whether a completed commit has written to the partition: the first of them created the partition's file."""
        return partition in self._partitions or (self._view is None and self._has_file(partition_file(partition)))

    def _has_file(self, path: str) -> bool:
        try:
            return bool(is_usable(path, self._store.get(path).to_pybytes()))
        except FileNotFoundError:
            return False

    def _new_id(self, partition: str, bucket: int) -> str:
        k = 0
        while True:
            found = self._definition.file_id(partition, bucket, k)
            if self._view is None or not self._view.was_replaced(partition, found):
                return found
            k += 1
