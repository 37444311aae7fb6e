"""A folder that stays for as long as its root's disk is mounted: without it nothing below is taken for missing."""

from collections.abc import Sequence

from headgate_tables.errors import StoreUnavailableError
from headgate_tables.storage.store import Store


class MountedFolder:
    """``folder``: below the root of ``store``; no program removes it. Once it was seen on a local disk or NFS, it is gone only
    while that is not mounted, and an empty mount point looks like a store without tables. A new store has no such folder yet.
    A bucket has none at all: there a read costs what it costs without this.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._is_local = store.url.startswith("file:")
        self._seen = False

    def check(self) -> None:
        """Before something is made below it. Raises StoreUnavailableError."""
        if not self._is_local:
            return
        if self._store.version(self._folder) is not None:
            self._seen = True
        elif self._seen:
            raise StoreUnavailableError(
                f"{self._store.url}/{self._folder} is gone, which no program removes",
                fix="Mount the store's disk, or move its folder back; then everything goes on by itself.",
            )

    def note_made(self) -> None:
        """A file below it was made."""
        self._seen = True

    def list(self, folder: str) -> Sequence[str]:
        """The files of a folder below it; none for a missing one. Raises StoreUnavailableError."""
        if files := self._store.list_folder(folder).files:
            self._seen = True
        elif self._is_local:
            self.check()
            files = self._store.list_folder(folder).files  # the disk may have come back between the two looks
        return files

    def get(self, path: str) -> bytes | None:
        """A file below it; None for a missing one. Raises StoreUnavailableError."""
        found = self._get(path)
        if found is not None:
            self._seen = True
        elif self._is_local:
            self.check()
            found = self._get(path)
        return found

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path).to_pybytes()
        except FileNotFoundError:
            return None
