"""As much of Kubernetes's API as the credentials' Job calls: Secrets, by HTTPS, with a token; what is applied is kept."""

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.certificates import self_signed

TOKEN = "an-account-s-token"


@dataclass
class KubernetesApi:
    """``account``: the folder that a pod would have. ``secrets``: by name. ``forbidden``: names that the Role leaves out."""

    account: Path
    port: int = 0
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    applied: list[str] = field(default_factory=list)

    def content(self, name: str) -> dict[str, bytes]:
        """What a Secret holds."""
        return {key: base64.b64decode(value) for key, value in self.secrets[name]["data"].items()}

    def put(self, name: str, content: dict[str, str]) -> None:
        """Makes a Secret as another program would."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
        self.secrets[name] = {"data": data, "metadata": {"resourceVersion": "1"}}

    def answer(self, method: str, name: str, body: bytes) -> tuple[int, object]:
        """Status and object."""
        if name in self.forbidden:
            return 403, {"kind": "Status", "message": f'secrets "{name}" is forbidden'}
        if method == "GET":
            return (200, self.secrets[name]) if name in self.secrets else (404, {"kind": "Status", "message": "not found"})
        given = json.loads(body)
        there = self.secrets.get(name)
        if there and given["metadata"].get("resourceVersion") != there["metadata"]["resourceVersion"]:
            return 409, {"kind": "Status", "message": "the object has been modified"}
        self.applied.append(name)
        self.secrets[name] = {**given, "metadata": {**given["metadata"], "resourceVersion": str(len(self.applied))}}
        return 200, self.secrets[name]


@contextlib.contextmanager
def kubernetes_api(folder: Path) -> Iterator[KubernetesApi]:
    """Serves on "localhost" while the block runs."""
    folder.mkdir(exist_ok=True)
    shown = self_signed(folder / "api")
    account = folder / "account"
    account.mkdir(parents=True)
    (account / "ca.crt").write_bytes(shown.cert.read_bytes())
    (account / "token").write_text(TOKEN)
    (account / "namespace").write_text("rows")
    api = KubernetesApi(account)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.cert, shown.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    api.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_PATCH(self) -> None:
            assert self.headers["Content-Type"] == "application/apply-patch+yaml"
            assert "fieldManager=" in self.path
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            path, _, _ = self.path.partition("?")
            prefix = "/api/v1/namespaces/rows/secrets/"
            if self.headers["Authorization"] != f"Bearer {TOKEN}" or not path.startswith(prefix):
                self._send(401, {"message": "Unauthorized"})
            else:
                self._send(*api.answer(self.command, path.removeprefix(prefix), body))

        def _send(self, status: int, answer: object) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Silent."""

    return Handler
