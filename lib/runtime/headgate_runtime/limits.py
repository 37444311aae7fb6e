"""The gRPC limits of all servers and clients."""

from typing import Final

MAX_MESSAGE_BYTES: Final = 9 * 2**20
"""A batch of 8 MiB on the wire, its schema (at most 256 KiB) and the envelope. grpcio compares this with the size on the wire,
and again after decompression."""

_MAX_HEADER_BYTES: Final = 8 * 2**10
_MIN_PING_MS: Final = 10_000
_KEEPALIVE_MS: Final = 15_000
_KEEPALIVE_TIMEOUT_MS: Final = 5_000

_BOTH: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", _MAX_HEADER_BYTES),
    ("grpc.absolute_max_metadata_size", 2 * _MAX_HEADER_BYTES),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
)

SERVER_OPTIONS: Final = (
    *_BOTH,
    # With it, two processes on one port would share its connections, and each would get calls for the other.
    ("grpc.so_reuseport", 0),
    # Against floods of resets and open streams. A client has one stream per channel. A stream above the limit waits without an
    # error, so the limit is well above the 64 channels that one connection is expected to carry.
    ("grpc.max_concurrent_streams", 1024),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_MS),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS: Final = (
    *_BOTH,
    # Callers retry themselves, by the contracts of the services, which count calls: gRPC must not repeat one unseen.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # A process that comes back is reached within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
