"""Why a load waits: the coordinators tell, or do not answer."""

from dataclasses import replace
from types import TracebackType
from typing import Self

import headgate
from headgate.errors import HeadgateError, UnavailableError
from headgate_cli.cluster import Access

_PATIENCE_S = 2.0


class WaitReason:
    """Asks for the state of one table, through a connection of its own whose calls end soon."""

    def __init__(self, access: Access, table: str) -> None:
        self._table = table
        self._cluster: headgate.Headgate = replace(access, timeout=_PATIENCE_S).connect()
        self._may_ask = True

    def __call__(self) -> str:
        """What keeps rows of the table from being committed; empty where nothing is known."""
        if not self._may_ask:
            return ""
        try:
            status = self._cluster.status(self._table)
        except UnavailableError as error:
            return f"{error.message}; trying again"
        except HeadgateError:
            self._may_ask = False  # such as for a principal that may write and not look
            return ""
        return next((alarm for table in status.tables for alarm in table.alarms), "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._cluster.close()
