"""An issuer of signed tokens: its keys, and a web server on this machine that shows them."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Handler: TypeAlias = Callable[[BaseHTTPRequestHandler], None]


class Issuer:
    """``keys``: what it shows now, by id. ``requests``: paths that were asked for. ``answer`` replaces the usual one."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {}
        self.requests: list[str] = []
        self.answer: Handler | None = None
        self.address = ""
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def sign(self, kid: str, claims: Mapping[str, object], key: PrivateKey | None = None) -> str:
        """By the key of that id, or by ``key`` under that id."""
        key = key or self.keys[kid]
        return jwt.encode(dict(claims), key, algorithm=algorithm_of(key), headers={"kid": kid})

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        self._loop.call_soon_threadsafe(self.asked.set)
        if self.answer is not None:
            self.answer(request)
        elif request.path == "/.well-known/openid-configuration":
            answer_json(request, {"issuer": self.address, "jwks_uri": f"{self.address}/keys"})
        else:
            answer_json(request, {"keys": [public(key, kid) for kid, key in self.keys.items()]})


@contextlib.asynccontextmanager
async def issuer() -> AsyncIterator[Issuer]:
    """Serves until the block ends."""
    made = Issuer()

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.handle(self)

        def log_request(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    made.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        await asyncio.to_thread(server.shutdown)
        thread.join()
        server.server_close()


@contextlib.contextmanager
def issuer_beside() -> Iterator[Issuer]:
    """The same for what has no event loop, as a fixture of a module: ``asked`` is of no use there."""
    with asyncio.Runner() as runner:
        serving = issuer()
        made = runner.run(serving.__aenter__())
        try:
            yield made
        finally:
            runner.run(serving.__aexit__(None, None, None))


def answer_json(request: BaseHTTPRequestHandler, body: object) -> None:
    answer(request, 200, json.dumps(body).encode())


def answer(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    with contextlib.suppress(OSError):
        request.wfile.write(body)


def algorithm_of(key: PrivateKey) -> str:
    match key:
        case rsa.RSAPrivateKey():
            return "RS256"
        case ec.EllipticCurvePrivateKey():
            return "ES256"
        case _:
            return "EdDSA"


def public(key: PrivateKey, kid: str) -> dict[str, Any]:
    """Its entry of a key set."""
    shown = key.public_key()
    match shown:
        case rsa.RSAPublicKey():
            entry = RSAAlgorithm.to_jwk(shown, as_dict=True)
        case ec.EllipticCurvePublicKey():
            entry = ECAlgorithm.to_jwk(shown, as_dict=True)
        case _:
            entry = OKPAlgorithm.to_jwk(shown, as_dict=True)
    return {**entry, "kid": kid, "use": "sig"}
