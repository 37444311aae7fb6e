"""How many calls may be in flight: of the process, and of one caller."""

import contextlib
from collections import Counter
from collections.abc import Iterator

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error


class CallLimiter:
    """``total`` calls in the process. One caller has at most three quarters of them, so that others always get through."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._most = max(1, total * 3 // 4)
        self._in_flight: Counter[str] = Counter()

    @contextlib.contextmanager
    def counted(self, caller: str) -> Iterator[None]:
        """Counts a call while the block runs. Raises RpcError (CODE_OVERLOADED) when it would be one too many."""
        if self._in_flight[caller] >= self._most:
            raise _too_many(
                f"{self._most} calls and streams of this caller are open", "Close some of them, or use fewer channels."
            )
        if self._in_flight.total() >= self._total:
            raise _too_many(f"{self._total} calls and streams are open", "Send the same again later, or to another server.")
        self._in_flight[caller] += 1
        try:
            yield
        finally:
            self._in_flight[caller] -= 1
            if not self._in_flight[caller]:
                del self._in_flight[caller]


def _too_many(what: str, fix: str) -> Exception:
    return rpc_error(errors_pb2.CODE_OVERLOADED, f"{what}, and the limit is reached", fix)
