"""A proxy before an object store that spoils single answers: after the effect, or instead of it."""

import contextlib
import enum
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import unquote


class Fault(enum.Enum):
    """What happens to one request of the armed method."""

    DROP_ANSWER = "forwarded and done; the connection is reset before the answer"
    DROP_REQUEST = "not forwarded; the connection is reset"
    DROP_CONDITION = "forwarded without the header of the condition, as if the server did not know it"
    SWALLOW_ANSWER = "forwarded and done; the answer never comes and the connection stays open"


_CONDITIONS = (b"if-none-match:", b"x-goog-if-generation-match:")


class FaultyProxy:
    """Forwards HTTP/1.1 requests to one server, one after the other on each connection.

    ``arm`` spoils the next request of a method and a path, by a ``Fault`` or with a status instead of forwarding it.
    ``refuse`` answers all of them with a status until ``disarm``. ``seen`` holds method and path of every request that came in.
    """

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.seen: list[str] = []
        self._upstream = upstream
        self._armed: dict[tuple[str, str], list[Fault | int | None]] = {}
        self._refusing: int | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def arm(self, method: str, *faults: Fault | int | None, path: str = "") -> None:
        """The next requests of ``method`` get these faults, in this order; None lets one pass. ``path`` is searched in theirs."""
        self._armed.setdefault((method, path), []).extend(faults)

    def refuse(self, status: int) -> None:
        """Every request, whatever it is."""
        self._refusing = status

    @property
    def is_armed(self) -> bool:
        """Whether a fault has met no request yet."""
        return any(self._armed.values())

    def disarm(self) -> None:
        """From now on everything passes."""
        self._armed.clear()
        self._refusing = None

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, target: Callable[..., None], *args: socket.socket) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as requests:
            while head := _head(requests):
                body = requests.read(_content_length(head))
                method, path = head.split(b" ", 2)[:2]
                self.seen.append(f"{method.decode()} {path.decode()}")
                fault = self._next_fault(method.decode(), unquote(path.decode()))
                if isinstance(fault, int):
                    connection.sendall(_refusal(fault))
                    continue
                if fault is Fault.DROP_CONDITION:
                    head = _without_condition(head)
                answer = b"" if fault is Fault.DROP_REQUEST else self._forward(head, body)
                if fault in (Fault.DROP_ANSWER, Fault.DROP_REQUEST):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if fault is not Fault.SWALLOW_ANSWER:
                    connection.sendall(answer)

    def _next_fault(self, method: str, path: str) -> Fault | int | None:
        if self._refusing is not None:
            return self._refusing
        for (armed_method, pattern), faults in self._armed.items():
            if method == armed_method and faults and re.search(pattern, path):
                return faults.pop(0)
        return None

    def _forward(self, head: bytes, body: bytes) -> bytes:
        """The server's whole answer, with ``Connection: close`` so that its end is the connection's end."""
        first, rest = head.split(b"\r\n", 1)
        with socket.create_connection(self._upstream) as upstream:
            upstream.sendall(first + b"\r\nConnection: close\r\n" + rest + b"\r\n" + body)
            return b"".join(iter(lambda: upstream.recv(65536), b""))


def _head(requests: BinaryIO) -> bytes:
    """A request's first line and headers without the empty line, or nothing at the connection's end."""
    lines = []
    while (line := requests.readline()) != b"\r\n":
        if not line:
            return b""
        lines.append(line)
    return b"".join(lines)


def _without_condition(head: bytes) -> bytes:
    return b"".join(line for line in head.splitlines(keepends=True) if not line.lower().startswith(_CONDITIONS))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def _refusal(status: int) -> bytes:
    body = b"<Error><Code>Injected</Code><Message>injected</Message></Error>"
    return f"HTTP/1.1 {status} Injected\r\nContent-Length: {len(body)}\r\nContent-Type: application/xml\r\n\r\n".encode() + body


@contextlib.contextmanager
def faulty_proxy(url: str) -> Iterator[FaultyProxy]:
    """A proxy before the server at ``url`` (``http://host:port``)."""
    host, port = url.removeprefix("http://").split(":")
    proxy = FaultyProxy((host, int(port)))
    try:
        yield proxy
    finally:
        proxy.close()
