"""Ports of 127.0.0.1 for servers that are about to be started."""

import socket
from collections.abc import Iterator
from itertools import cycle
from random import SystemRandom
from typing import Final

_BLOCKS: Final = range(10_000, 30_000, 400)
"""First ports of the blocks, all below those that the system gives to connections and to port 0: by the time a server listens
there, one of these may well have been given to somebody else."""


def free_port() -> int:
    """A port that was free a moment ago and that no other call got, in this process or in another one.

    A process gets each port of its block before it gets one again. Chance alone is not enough: one of some ten test runs gave the
    same port to two servers of a cluster.
    """
    while not is_free(port := next(_ports)):
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


def _own_block() -> Iterator[int]:
    """The ports of a block that no other process has. The first one is bound as long as this process lives and says so."""
    for start in SystemRandom().sample(_BLOCKS, len(_BLOCKS)):
        with socket.socket() as claim:
            try:
                claim.bind(("127.0.0.1", start))
            except OSError:
                continue
            yield from cycle(range(start + 1, start + _BLOCKS.step))
    raise OSError(f"all {len(_BLOCKS)} blocks of ports from {_BLOCKS.start} are taken: end test runs and demos that still run")


_ports: Final = _own_block()
