"""Readers' leases: files that a reader still uses stay until it is done (rule D3). Nothing else is written by readers.

A lease is a create-only object with its whole content in its name, ``<expiry, ms>-<completion time>-<token>``, so
that one listing gives every lease. It is renewed by a new object before the old one goes.
"""

import json
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import OptionError, ReopenTable
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock, Ids

LEASE_FOLDER = ".hoodie/.headgate/lease"
GRACE_MS = 60_000
"""A lease counts for this much longer than it says: clocks of readers and of the table's owner differ."""
LONGEST_S = 7 * 86_400
"""A reader that dies without releasing its lease keeps files no longer than this."""


class Lease(NamedTuple):
    """``point``: the completion time as of which its holder reads."""

    expires_ms: int
    point: str
    token: str

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{LEASE_FOLDER}/{self.expires_ms:015d}-{self.point}-{self.token}"


class ReaderLease:
    """Keeps every file that a reader as of ``point`` needs, until ``expires_ms`` or until the lease is released."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, holder: str, seconds: float, lease: Lease) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._holder = holder
        self._seconds = seconds
        self._lease: Lease | None = lease

    @property
    def point(self) -> str:
        """The completion time as of which the lease keeps the table's files. Raises ReopenTable once it was released."""
        return self._live().point

    @property
    def expires_ms(self) -> int:
        """Milliseconds since the epoch. Raises ReopenTable once it was released."""
        return self._live().expires_ms

    def renew(self, seconds: float | None = None) -> None:
        """Extends the lease to ``seconds`` from now (default: as when it was taken).

        Raises ReopenTable when the lease had expired or was released: files may be gone. After an error of the store the lease
        ends when it would have before.
        """
        lease = self._live()
        if self._clock.now_ms() > lease.expires_ms:
            raise ReopenTable(
                f"the lease of {lease.point} expired before it was renewed",
                fix="Take a new one and read the table's newest snapshot; renew it in time, or ask for more seconds.",
            )
        length = self._seconds if seconds is None else seconds
        self._lease = _create(self._store, self._clock, self._ids, lease.point, length, self._holder)
        self._store.delete([lease.path])

    def release(self) -> None:
        """Ends the lease, so that a cleaner may delete the files. Releasing twice is no error."""
        lease, self._lease = self._lease, None
        if lease is not None:
            self._store.delete([lease.path])

    def __enter__(self) -> "ReaderLease":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def _live(self) -> Lease:
        if self._lease is None:
            raise ReopenTable("the lease was released", fix="Take a new one, and read the table's newest snapshot.")
        return self._lease


def take_lease(store: Store, clock: Clock, ids: Ids, *, point: str, seconds: float, holder: str) -> ReaderLease:
    """A lease on the table as of ``point``, a completion time. ``holder``: for people who ask what keeps their files.

    A cleaner that listed the leases just before does not see this one. It deletes only what was replaced more than
    ``headgate.clean.min.age`` ago, so nothing is lost to a caller that found the point on the timeline less than that ago and
    sees, after this has returned, that no CLEAN has passed the point. A slower caller starts over with the newest point.

    Raises OptionError for seconds out of range, StoreDeniedError where the reader may not write, StoreUnavailableError.
    """
    return ReaderLease(store, clock, ids, holder, seconds, _create(store, clock, ids, point, seconds, holder))


def live_leases(store: Store, now_ms: int) -> list[str]:
    """Points of the leases that have not expired, each a completion time, in order."""
    return sorted({lease.point for lease in _listed(store) if lease.expires_ms + GRACE_MS >= now_ms})


def leased_points(store: Store) -> set[str]:
    """Points of all leases, including expired ones that no cleaning has removed yet."""
    return {lease.point for lease in _listed(store)}


def drop_expired_leases(store: Store, now_ms: int) -> None:
    """Deletes the leases of readers that died. Their names are never used again."""
    expired = [lease.path for lease in _listed(store) if lease.expires_ms + GRACE_MS < now_ms]
    if expired:
        store.delete(expired)


def _create(store: Store, clock: Clock, ids: Ids, point: str, seconds: float, holder: str) -> Lease:
    if not 0 < seconds <= LONGEST_S:
        raise OptionError(f"{seconds:g} s is not a length for a lease", fix=f"It is above 0 and at most {LONGEST_S:g}; renew it.")
    lease = Lease(clock.now_ms() + int(seconds * 1000), point, ids.token())
    create_for_certain(store, clock, lease.path, json.dumps({"holder": holder, "point": point}).encode(), durable=True)
    return lease


def _listed(store: Store) -> Iterator[Lease]:
    for name in store.list_folder(LEASE_FOLDER).files:
        expires, _, rest = name.partition("-")
        point, _, token = rest.partition("-")
        if name.isascii() and expires.isdigit() and point.isdigit() and token:
            yield Lease(int(expires), point, token)
