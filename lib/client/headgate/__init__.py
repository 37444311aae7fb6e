"""Send rows to a Headgate cluster from Python, exactly once and in order, and read them::

    import headgate

    with headgate.connect("localhost:7070") as hg:
        orders = hg.create_table("orders", schema, key="id", ordering="at", partition_by="day", exist_ok=True)
        with orders.channel("loader-1") as ch:
            ch.upsert(rows)
            ch.flush("queryable")
        print(orders.scan(where="day = '2026-01-01'").to_arrow())

``headgate.open(address)`` reads a table without a cluster. ``headgate.aio`` is the same for asyncio. ``headgate.errors`` shows
the tree of errors.

A part is imported when it is first used: with pyarrow and grpc all of them take half a second of CPU, also of a program that
prints its help.
"""

from headgate import quiet  # isort: skip  # noqa: F401
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headgate import aio
    from headgate.acks import Acks, Level
    from headgate.blocking import Headgate, connect
    from headgate.blocking_channel import Channel, Receipt
    from headgate.blocking_table import Table
    from headgate.copying import Copy
    from headgate.credentials import Tls
    from headgate.definition import Listing, RecoverableTable, TableInfo
    from headgate.deleting import Deletion
    from headgate.errors import (
        BatchRefusedError,
        ChannelForbiddenError,
        ChannelTakenOverError,
        ClosedError,
        FixCall,
        GiveUp,
        HeadgateError,
        InsideCallError,
        InternalError,
        InvalidArgumentError,
        MissingExtraError,
        NotCommittedError,
        OverloadedError,
        PermissionDeniedError,
        ProtocolViolationError,
        QuotaError,
        RangeGoneError,
        Resume,
        RetryLater,
        RowError,
        SchemaError,
        SliceSetAsideError,
        TableDroppedError,
        TableExistsError,
        TableNotFoundError,
        TableQuarantinedError,
        TableRenamedError,
        TableRestoredError,
        TooLargeError,
        UnauthenticatedError,
        UnavailableError,
        UnknownOutcomeError,
        UnreadableTableError,
        VersionError,
    )
    from headgate.operating import Alteration, ChannelSummary, Compaction, Restore, TableDrop, Truncation
    from headgate.reading.blocking import StoredTable, open  # noqa: A004 - read as headgate.open
    from headgate.reading.scan import Scan
    from headgate.status import Status

__all__ = [
    "Acks",
    "Alteration",
    "BatchRefusedError",
    "Channel",
    "ChannelForbiddenError",
    "ChannelSummary",
    "ChannelTakenOverError",
    "ClosedError",
    "Compaction",
    "Copy",
    "Deletion",
    "FixCall",
    "GiveUp",
    "Headgate",
    "HeadgateError",
    "InsideCallError",
    "InternalError",
    "InvalidArgumentError",
    "Level",
    "Listing",
    "MissingExtraError",
    "NotCommittedError",
    "OverloadedError",
    "PermissionDeniedError",
    "ProtocolViolationError",
    "QuotaError",
    "RangeGoneError",
    "Receipt",
    "RecoverableTable",
    "Restore",
    "Resume",
    "RetryLater",
    "RowError",
    "Scan",
    "SchemaError",
    "SliceSetAsideError",
    "Status",
    "StoredTable",
    "Table",
    "TableDrop",
    "TableDroppedError",
    "TableExistsError",
    "TableInfo",
    "TableNotFoundError",
    "TableQuarantinedError",
    "TableRenamedError",
    "TableRestoredError",
    "Tls",
    "TooLargeError",
    "Truncation",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownOutcomeError",
    "UnreadableTableError",
    "VersionError",
    "aio",
    "connect",
    "open",
]

_MODULES: Final[Mapping[str, str]] = {
    "Acks": "acks",
    "Level": "acks",
    "Headgate": "blocking",
    "connect": "blocking",
    "Channel": "blocking_channel",
    "Receipt": "blocking_channel",
    "Table": "blocking_table",
    "Copy": "copying",
    "Tls": "credentials",
    "Listing": "definition",
    "RecoverableTable": "definition",
    "TableInfo": "definition",
    "Deletion": "deleting",
    "Alteration": "operating",
    "ChannelSummary": "operating",
    "Compaction": "operating",
    "Restore": "operating",
    "TableDrop": "operating",
    "Truncation": "operating",
    "StoredTable": "reading.blocking",
    "open": "reading.blocking",
    "Scan": "reading.scan",
    "Status": "status",
}
"""Where a name is defined; the others of ``__all__`` are errors."""

if not TYPE_CHECKING:  # or mypy would take every misspelt name for one that is made at run time

    def __getattr__(name: str) -> object:
        """Imports a part of the package at its first use (PEP 562). Raises AttributeError."""
        if name in {"aio", "errors"}:
            return importlib.import_module(f"headgate.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'headgate' has no attribute {name!r}")
        found = getattr(importlib.import_module(f"headgate.{_MODULES.get(name, 'errors')}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
