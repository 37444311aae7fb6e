"""A local store whose listings by a thread of its own wait, or fail."""

import threading

from headgate_tables.errors import StoreUnavailableError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import FolderListing
from headgate_tables.system import SystemIds


class HeldStore(LocalStore):
    """The thread that lists waits in it until ``listing_may_go_on``. ``answers``: False makes the listing fail."""

    def __init__(self, root: str, ids: SystemIds) -> None:
        super().__init__(root, ids)
        self.listing_may_go_on = threading.Event()
        self.answers = True

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        if threading.current_thread().name.startswith("headgate-list"):
            self.listing_may_go_on.wait()
            if not self.answers:
                raise StoreUnavailableError("no answer", fix="Wait.")
        return super().list_folder(folder, after=after, sizes=sizes)
