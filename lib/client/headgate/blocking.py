"""The blocking SDK, for programs without an event loop. Safe to use from several threads, and inside a running loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from headgate import aio
from headgate.blocking_table import Table
from headgate.coordinators import parse_addresses
from headgate.credentials import Tls
from headgate.definition import Columns, Listing, RecoverableTable, TableInfo
from headgate.encoding import Compression
from headgate.loop_thread import LoopThread
from headgate.schemas import SchemaLike
from headgate.status import Status
from headgate.system import System


def connect(
    address: str | Sequence[str],
    *,
    token: str | Path | None = None,
    tls: Tls | bool | None = None,
    timeout: float = aio.DEFAULT_TIMEOUT,
    wait: float = 0.0,
    compression: Compression = None,
    in_flight_bytes: int = aio.DEFAULT_IN_FLIGHT,
    front: bool = False,
    system: System | None = None,
) -> "Headgate":
    """Returns a connection to a cluster. Sends nothing before the first call.

    ``address``: one coordinator or several (``"a:7070,b:7070"`` or a list); one that answers is enough. ``token`` is a bearer
    token, or the ``pathlib.Path`` of a file with it, which is read again when it is renewed; sent in the clear without ``tls``.
    ``tls=True`` trusts the system's authorities; ``headgate.Tls`` names others, and a certificate by which the program shows who
    it is. Without both, a cluster that `headgate dev` runs for the same user on this
    machine is reached with the credentials that it made; ``tls=False`` keeps to plaintext. ``timeout``: seconds that a call
    waits, through breaks and takeovers, unless it gives its own. A cluster to which there is no way at first (nobody listens, the
    name is not known, one side alone speaks TLS) is an UnavailableError within 2 s; with ``wait=60`` calls try for a minute, and
    say so in the log ``headgate``. ``compression="lz4"`` saves about 40 % on the wire for 0.7 ms of CPU a MB.
    ``in_flight_bytes``: how much one channel buffers until it is queryable (rule CH7), at most what the cluster allows. At half
    of it the channel asks for a checkpoint. ``front=True``: ``address`` is a proxy's, all calls go there. Needless where the
    coordinators' setting `front` names it.

    A connection has a thread, which a fork of the process has not: what it calls there is a ClosedError, and so is connecting
    anew while the parent was connected. gRPC itself may also crash in such a fork. Connect after the fork.

    Raises InvalidArgumentError (also for a profile that others may open), OSError (a file of TLS or of the token), ClosedError::

        with headgate.connect("localhost:7070") as hg:
            print(hg.status())
    """
    addresses = parse_addresses(address)

    def make() -> aio.Headgate:
        return aio.connect(
            addresses,
            token=token,
            tls=tls,
            timeout=timeout,
            wait=wait,
            compression=compression,
            in_flight_bytes=in_flight_bytes,
            front=front,
            system=system,
        )

    return Headgate(LoopThread(make))


class Headgate:
    """A connection to a cluster, made by ``connect``. Leaving the ``with`` block closes it and its channels, without a flush."""

    def __init__(self, thread: LoopThread[aio.Headgate]) -> None:
        self._thread = thread
        self._core = thread.resource

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; open channels end as with ``channel.close(None)``."""
        self._thread.close()

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        key: Columns,
        ordering: str | None = None,
        partition_by: Columns = None,
        buckets: int = 0,
        hive_style: bool = False,
        table_version: int = 0,
        exist_ok: bool = False,
    ) -> "Table":
        """Creates a table; with ``exist_ok`` it returns an existing one of the same definition.

        ``schema``: a pyarrow schema; pairs of name and type (``[("id", "int64"), ("at", datetime)]``); a class of rows: a
        dataclass, NamedTuple, attrs class or pydantic model; a pandas or polars frame, or another source of Arrow rows, and
        ``Path("orders.parquet")``, whose columns and types count, not their rows. Columns of times without a zone become UTC's.
        ``ordering``: among rows of one key its largest value wins; without one, the latest write. ``buckets``: file groups a
        partition; ``rescale`` changes it. ``hive_style``: folders are named ``column=value``. ``table_version``: Hudi's, 8 or 9
        (for Hudi 1.1 and newer). 0 means 8, of both. Raises TableExistsError, SchemaError, InvalidArgumentError,
        QuotaError (of tables), UnavailableError::

            orders = hg.create_table("orders", [("id", int), ("day", str), ("at", datetime)],
                                     key="id", ordering="at", partition_by="day", exist_ok=True)
            taken = hg.create_table("taken", frame, key="id", exist_ok=True)
        """
        table = self._core.create_table(
            name,
            schema,
            key=key,
            ordering=ordering,
            partition_by=partition_by,
            buckets=buckets,
            hive_style=hive_style,
            table_version=table_version,
            exist_ok=exist_ok,
        )
        return Table(self._thread, self._thread.run(table))

    def table(self, name: str) -> "Table":
        """Returns an existing table: ``hg.table("orders")``. Raises TableNotFoundError, UnavailableError."""
        return Table(self._thread, self._thread.run(self._core.table(name)))

    def tables(self) -> list[TableInfo]:
        """Returns all readable tables, by name: ``[info.name for info in hg.tables()]``. Raises UnavailableError."""
        return self._thread.run(self._core.tables())

    def unreadable_tables(self) -> list[str]:
        """Returns the names of tables whose definition cannot be read now; ``status(name)`` says why. Raises UnavailableError."""
        return self._thread.run(self._core.unreadable_tables())

    def listing(self) -> Listing:
        """Returns ``tables`` and ``unreadable_tables`` in one call: ``hg.listing().tables``. Raises UnavailableError."""
        return self._thread.run(self._core.listing())

    def dropped_tables(self) -> list[RecoverableTable]:
        """Returns tables that ``undrop_table`` brings back: ``[each.until for each in hg.dropped_tables()]``."""
        return self._thread.run(self._core.dropped_tables())

    def undrop_table(self, name: str) -> "Table":
        """Brings a table back, with rows and offsets, as long as ``dropped_tables`` has it: ``hg.undrop_table("orders")``."""
        return Table(self._thread, self._thread.run(self._core.undrop_table(name)))

    def status(self, table: str = "", *, coordinator: str = "") -> Status:
        """Returns the cluster's state, or that ``table``'s, as any or this ``coordinator`` has it. Raises UnavailableError."""
        return self._thread.run(self._core.status(table, coordinator=coordinator))
