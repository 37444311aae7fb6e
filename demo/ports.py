"""Ports of 127.0.0.1 for servers that are about to be started."""

import socket
from random import SystemRandom


def free_port() -> int:
    """A port that was free a moment ago.

    It is below those that the system gives to connections and to port 0: by the time a server listens there, one of these may
    well have been given to somebody else. No seed of a test makes two processes choose the same.
    """
    while not is_free(port := SystemRandom().randrange(10_000, 30_000)):
        pass
    return port


def is_free(port: int) -> bool:
    """Whether a server could listen on it now; lingering connections of an earlier server do not matter."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
