"""What client and server say of themselves in the metadata of each call, for clients that reach the cluster through one front
address: a load balancer or gateway that chooses a server by itself.
"""

from typing import Final

DIALLED: Final = "headgate-dialled"
"""Of a request: the address, host:port, that the program gave to the SDK."""

TARGET: Final = "headgate-target"
"""Of a request through a front address: the coordinator that it is for, by the address that coordinators gave. The one that gets
it passes it on. A writer does not look at it, as any writer takes any channel."""

FRONT: Final = "headgate-front"
"""Of an answer: the dialled address is a front address by the coordinator's settings, so the client calls no other one."""

SERVER: Final = "headgate-server"
"""Of an answer: the server's own address, as coordinators give it. A client behind a front address learns which writer it has."""

FORWARDED: Final = "headgate-forwarded"
"""Of a request from one coordinator to another: the address of the client whose call, with its credentials, is passed on."""
