"""The gRPC limits of all servers and clients. docs/operations.md, "What a hostile caller can cost", adds them up."""

from dataclasses import dataclass
from typing import Final

from headgate_proto.lookups import lookup_options
from headgate_proto.serialized import PART_BYTES

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20

MAX_MESSAGE_BYTES: Final = 9 * _MIB
"""A batch of 8 MiB on the wire, its schema (at most 256 KiB) and the envelope: to a server in parts, to a client in one piece."""

RECEIVED_BYTES: Final = PART_BYTES + 4 * _KIB
"""The most that a server receives of one message. gRPC compares this with a message's length when that arrives, before the
message itself, and again while it decompresses. What gRPC refuses costs others next to nothing, also when it comes again and
again."""

WINDOW_BYTES: Final = 64 * _KIB
"""gRPC keeps so much of a stream that we do not read; while a read waits, it takes the whole message besides. Left to itself it
would keep up to 16 MiB of each stream, which no memory limit could see. Larger: no faster, as every message is waited for."""

CALL_BYTES: Final = WINDOW_BYTES + 20 * _KIB
"""A call in flight: its window, and what gRPC and Python keep of it. A message that is awaited comes on top."""

MAX_PENDING_CALLS: Final = 256
"""Calls that have arrived and that our loop has not seen; each keeps a window. More are refused by gRPC itself, which clients try
again. A loop that is busy for 100 ms must not refuse the channels of a program that opens them all at once."""

WAITING_CALLS: Final = 1_024
"""Where a process has memory for no fewer."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What calls may cost a process before their handlers run.

    ``message_bytes``: the most that gRPC receives of one message, whatever the method. ``calls``: of clients, in flight; each
    keeps ``CALL_BYTES``. The services' own are not counted: there are as many as the cluster has tables
    and processes. ``read_bytes``: of requests that are being received; each reserves ``message_bytes``, since gRPC knows no
    limit by method. So 16 are received at once, which takes less than a millisecond when they are there. ``read_seconds``:
    how long a request waits for its turn, and how long it may then take to arrive. ``waiting``: places of calls that wait in the
    ``tarpit``; each keeps ``CALL_BYTES``.

    Health checks need no token: ``stranger_bytes`` and ``stranger_seconds`` are the same for them; one more ends the oldest.
    So it does with more than ``watchers`` streams of the health service. ``connections``: more are closed at once; each takes
    70 KiB, and a file descriptor, of which many systems allow a process 1,024.
    """

    message_bytes: int = RECEIVED_BYTES
    calls: int = 1_024
    waiting: int = WAITING_CALLS
    read_bytes: int = 16 * RECEIVED_BYTES
    read_seconds: float = 10.0
    stranger_bytes: int = 16 * RECEIVED_BYTES
    stranger_seconds: float = 3.0
    watchers: int = 64
    connections: int = 1_000


PROBES: Final = DoorLimits(message_bytes=4 * _KIB, connections=64)
"""Of the port that serves health alone: machines that look after the process connect to it."""

_REQUEST_BYTES: Final = 128 * _KIB
_REQUEST_BYTES_OF: Final = {
    "/headgate.api.v1.TableService/CreateTable": 512 * _KIB,  # its schema alone may have 256 KiB
    "/grpc.health.v1.Health/Check": _KIB,
    "/grpc.health.v1.Health/Watch": _KIB,
}

_MAX_HEADER_BYTES: Final = 8 * _KIB
_MIN_PING_MS: Final = 2_000
_KEEPALIVE_MS: Final = 15_000
_KEEPALIVE_TIMEOUT_MS: Final = 5_000

_BOTH: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", _MAX_HEADER_BYTES),
    ("grpc.absolute_max_metadata_size", 2 * _MAX_HEADER_BYTES),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    # Without it a ping is waited for for a minute, whatever the line before says.
    ("grpc.http2.ping_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
)

_SERVER_OPTIONS: Final = (
    *_BOTH,
    # With it, two processes on one port would share its connections, and each would get calls for the other.
    ("grpc.so_reuseport", 0),
    # Against floods of resets and open streams. A client has one stream per channel. A stream above the limit waits without an
    # error, so the limit is well above the 64 channels that one connection is expected to carry.
    ("grpc.max_concurrent_streams", 1024),
    # Without the estimate of bandwidth the window stays as it is.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
    # Between the two values gRPC refuses some calls by chance.
    ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
    # A connection that says nothing takes a place, too.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
    # gRPC's name of it; an unknown one is passed over in silence, and means five minutes.
    ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_MS),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS: Final = (
    *_BOTH,
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # Callers retry themselves, by the contracts of the services, which count calls: gRPC must not repeat one unseen.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # Of an idle stream, too: without it only two pings go out between two messages, then one a minute.
    ("grpc.http2.max_pings_without_data", 0),
    # A process that comes back is reached within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    *lookup_options(),
)


def server_options(limits: DoorLimits) -> tuple[tuple[str, int], ...]:
    """The options of gRPC for a server with these limits."""
    return (
        *_SERVER_OPTIONS,
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_allowed_incoming_connections", limits.connections),
    )


def request_bytes_of(method: str) -> int:
    """Most bytes of the one request of ``method`` ("/package.Service/Name"), where requests are no stream."""
    return _REQUEST_BYTES_OF.get(method, _REQUEST_BYTES)
