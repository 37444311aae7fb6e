"""When what dead instants left is searched for and deleted: on an object store beside commits, which do not wait (rule RO6)."""

from concurrent.futures import Future

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.hudi.sweep import Leftovers, Search, delete_named, drop_revoked_stages
from headgate_tables.storage import workers
from headgate_tables.storage.store import Store


class Sweeper:
    """The sweeps of one handle."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._took_over = False
        self._searching: Future[Leftovers] | None = None

    def took_over(self) -> None:
        """Notes a fence: the next sweep is a takeover's. A search that is under way counts for nothing."""
        self._took_over, self._searching = True, None

    def sweep(self, log: CommitLog, *, forget_after_ms: int, beside: bool) -> bool:
        """Sweeps if that is due. Returns False while a thread searches; the sweep ends with a later call.

        ``beside``: an object store, where a search may list the whole table, is searched on a thread of its own.
        Raises StoreUnavailableError and others of the store: the sweep stays due.
        """
        if self._searching is None:
            if not (self._took_over or log.fold_is_due() or log.dead_names.sweep_is_due):
                return True
            delete_named(self._store, log)
            search = Search.due(log, takeover=self._took_over)
            if not beside or self._store.stages or not search.wanted:
                self._end(log, search.run(self._store), forget_after_ms)
                return True
            self._searching = workers.beside("headgate-sweep", lambda: search.run(self._store))
        if not self._searching.done():
            return False
        searching, self._searching = self._searching, None
        self._end(log, searching.result(), forget_after_ms)
        return True

    def _end(self, log: CommitLog, found: Leftovers, forget_after_ms: int) -> None:
        found.delete(self._store, log, forget_after_ms=forget_after_ms)
        if self._took_over:
            drop_revoked_stages(self._store, log)
            self._took_over = False
