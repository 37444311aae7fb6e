"""Why no connection to a server comes about, read from what gRPC says."""

from typing import NamedTuple


class Unreachable(NamedTuple):
    """``cause``: in a few words, to stand behind the address. ``fix``: the next step."""

    cause: str
    fix: str


_NO_CONNECTION = "failed to connect to all addresses"
_NO_NAME = "errors resolving"
NOBODY_LISTENS = "nothing listens there"
_PORT = "Check the port: this is not a coordinator's."
_SAID = {
    "Connection refused": Unreachable(NOBODY_LISTENS, "Check the port, and that the coordinator runs."),
    _NO_NAME: Unreachable("the host name is not known", "Check the name."),
    "WRONG_VERSION_NUMBER": Unreachable("the server speaks no TLS", "Connect without TLS, or check the port."),
    "CERTIFICATE_VERIFY_FAILED": Unreachable(
        "no trusted authority signed the server's certificate",
        "Name the file of the cluster's authority: tls=headgate.Tls(ca=...).",
    ),
    "Hostname Verification Check failed": Unreachable(
        "the server's certificate is for other names", "Use a name of the certificate in the address."
    ),
    "Failed parsing HTTP/2": Unreachable("another kind of server answers", _PORT),
    "http1.x server": Unreachable("another kind of server answers", _PORT),
}
_NO_ANSWER = "tcp handshaker shutdown"
_CLOSED = ("Socket closed", "Connection reset", "Broken pipe")
_WANTS_TLS = Unreachable(
    "the server closes the connection, as one with TLS does",
    "Name the file of the cluster's authority: tls=headgate.Tls(ca=...).",
)
_WANTS_CERTIFICATE = Unreachable(
    "the server ends the TLS handshake",
    "Check the port, and whether the server wants a client's certificate, valid and of the authority that it names: "
    "headgate.Tls(certificate=..., key=...).",
)
_SLOW = ("timed out", "Timeout", "Endpoint closing", "DNS query cancelled")
"""Also of a server that is there, on a machine with too much to do, or behind a DNS server that does not answer now."""


def why_unreachable(details: str, *, tls: bool) -> Unreachable | None:
    """The cause of a call's failure, if ``details`` say that there is certainly no way to the server; else None."""
    if not details.startswith((_NO_CONNECTION, _NO_NAME)) or any(words in details for words in _SLOW):
        return None  # a call that was sent, too: nobody knows whether it was carried out
    for words, why in _SAID.items():
        if words in details:
            return why
    if any(words in details for words in _CLOSED):
        return _WANTS_CERTIFICATE if tls else _WANTS_TLS
    if _NO_ANSWER in details:
        return Unreachable("nothing answers there", "Check the address, the network, and that no firewall is on the way.")
    said = details.removeprefix(_NO_CONNECTION).removeprefix("; last error: ")
    return Unreachable(f"no connection ({said})", "Check that the cluster runs and is reachable from here.")


def had_connection(details: str) -> bool:
    """Whether a call that failed so had a connection, which broke or leads to a proxy without a way to the server."""
    return not details.startswith((_NO_CONNECTION, _NO_NAME))


def connected_too_late(details: str) -> bool:
    """Whether the time to connect was over before the server had answered: it is slow, or nobody has its address."""
    return details.startswith(_NO_CONNECTION) and not any(words in details for words in (*_SAID, *_CLOSED))
