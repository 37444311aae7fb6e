"""How many tables a principal may have made: counted at each creation, by the creators that the store's entries name."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeAlias

import structlog

from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error
from headgate_tables.errors import CorruptFileError, NotATableError, UnsupportedTableError

_log = structlog.get_logger()

Creators: TypeAlias = Mapping[str, str]
"""Tables, with the principal that made each; empty: it is not known."""


class TableQuota:
    """Of one coordinator, which counts its own creations under way. It does not see those of other coordinators until their
    entries are there: each of them may let a principal take the last places at the same moment.

    ``look``: returns who made which table, all of them, now; it gets what it returned last, since entries do not change.
    """

    def __init__(self, look: Callable[[Creators], Awaitable[Creators]]) -> None:
        self._look = look
        self._known: Creators = {}
        self._looking = asyncio.Lock()
        self._under_way: list[tuple[str, str]] = []

    @contextlib.asynccontextmanager
    async def counted(self, table: str, principal: str, most: float) -> AsyncIterator[None]:
        """Around a creation. ``most``: the principal's quota; infinite: none, and nothing is looked at.

        Raises RpcError (CODE_QUOTA) when it would be one too many. A table that is there takes no further place.
        """
        if math.isinf(most):
            yield
            return
        creation = table, principal
        async with self._looking:
            begun = {name for name, by in self._under_way if by == principal}  # before the look: some end during it
            self._known = await self._look(self._known)
            made = {name for name, by in self._known.items() if by == principal}
            if table not in self._known and len((made | begun) - {table}) >= most:
                raise _too_many(len(made), most)
            self._under_way.append(creation)
        try:
            yield
        finally:
            self._under_way.remove(creation)


def made_tables(storage: TableStorage, known: Creators) -> Creators:
    """For ``TableQuota``; blocks for a listing, and for a read of each entry that is not ``known``. A table that was dropped and
    made again by somebody else between two looks keeps the name of who made it first.

    Raises TablesError: while the store does not answer, nothing is created. An entry that cannot be read counts for nobody.
    """
    return {name: known[name] if name in known else _creator(storage, name) for name in storage.table_names()}


def _creator(storage: TableStorage, name: str) -> str:
    try:
        return storage.creator(name)
    except NotATableError:  # dropped since the listing
        return ""
    except (CorruptFileError, UnsupportedTableError) as error:
        _log.warning("an entry cannot be read, and its table counts in nobody's quota", table=name, error=str(error))
        return ""


def _too_many(made: int, most: float) -> Exception:
    return rpc_error(
        errors_pb2.CODE_QUOTA,
        f"the principal made {made} tables that are there, and its quota `tables` is {most:g}",
        "Drop one that it made, or have the operators raise `tables` in [[quotas]] of the access file.",
    )
