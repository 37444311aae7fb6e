"""The API `external.metrics.k8s.io/v1beta1` over HTTPS, as the horizontal pod autoscaler asks for it. One file, so that a pod can
run it from a ConfigMap: `python server.py --listen 0.0.0.0:6443 --source writer=NAME:9090 --source coordinator=NAME:9090`.

NAME may stand for many pods (a headless service): each of its addresses is scraped, and the figures are added up. It does not ask
who calls, so it is for tests alone; in production prometheus-adapter or KEDA does this work.
"""

import argparse
import json
import socket
import ssl
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client.parser import text_string_to_metric_families

GROUP = "/apis/external.metrics.k8s.io/v1beta1"
SCRAPE_S = 5.0


@dataclass(frozen=True, slots=True)
class Metric:
    """The sum of some metrics over all processes of ``source``. Without an answer from any of them there is no figure."""

    source: str
    names: Sequence[str]


METRICS: Mapping[str, Metric] = {
    "headgate_writer_uncommitted_bytes": Metric("writer", ["headgate_writer_uncommitted_bytes"]),
    "headgate_operations_unfinished": Metric("coordinator", ["headgate_operations_waiting", "headgate_operations_running"]),
}


def total(texts: Sequence[str], names: Sequence[str]) -> float:
    """Adds up all samples of these names. ``texts``: answers of scrapes."""
    families = (family for text in texts for family in text_string_to_metric_families(text))
    return sum(sample.value for family in families for sample in family.samples if sample.name in names)


def scraped(source: str) -> list[str]:
    """The metrics of every process behind ``host:port``. Raises OSError if one does not answer: a sum without it would be wrong,
    and the autoscaler leaves everything as it is when it gets no figure.
    """
    host, _, port = source.rpartition(":")
    found = {str(info[4][0]) for info in socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)}
    return [_scrape(f"http://{address}:{port}/metrics") for address in sorted(found)]


def _scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SCRAPE_S) as answer:
        return str(answer.read().decode())


def discovery() -> dict[str, Any]:
    """What the API has, for the API server and `kubectl api-resources`."""
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
        for name in METRICS
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP.removeprefix("/apis/"),
        "resources": resources,
    }


def value_list(name: str, value: float, now: datetime) -> dict[str, Any]:
    """One figure, as the autoscaler reads it: a quantity of Kubernetes, in thousandths."""
    item = {
        "metricName": name,
        "metricLabels": {},
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "value": f"{round(value * 1000)}m",
    }
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": GROUP.removeprefix("/apis/"),
        "metadata": {},
        "items": [item],
    }


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    """An error, as Kubernetes writes them."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}


class Handler(BaseHTTPRequestHandler):
    """``sources``: host:port by kind of service."""

    sources: Mapping[str, str] = {}
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        if path in ("/healthz", "/livez", "/readyz"):
            self._send(200, {})
        elif path == GROUP:
            self._send(200, discovery())
        else:
            self._send(*self._figure(path))

    def _figure(self, path: str) -> tuple[int, dict[str, Any]]:
        name = path.rpartition("/")[2]
        is_metric = path.startswith(f"{GROUP}/namespaces/") and path.count("/") == GROUP.count("/") + 3
        metric = METRICS.get(name) if is_metric else None
        if metric is None or metric.source not in self.sources:
            return 404, status(404, "NotFound", f"there is no external metric at {path}; there are {', '.join(METRICS)}")
        try:
            texts = scraped(self.sources[metric.source])
        except OSError as error:
            return 503, status(503, "ServiceUnavailable", f"{self.sources[metric.source]} cannot be scraped: {error}")
        return 200, value_list(name, total(texts, metric.names), datetime.now(UTC))

    def _send(self, code: int, answer: Mapping[str, Any]) -> None:
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def server(listen: str, sources: Mapping[str, str]) -> ThreadingHTTPServer:
    """A server that is bound, with a certificate of its own that nobody can check: the APIService says so."""
    host, _, port = listen.rpartition(":")
    handler = type("BoundHandler", (Handler,), {"sources": sources})
    made = ThreadingHTTPServer((host, int(port)), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        Path(file.name).write_bytes(_certificate())
        context.load_cert_chain(file.name)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    return made


def _certificate() -> bytes:
    """Key and certificate, for a day."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "external-metrics")])
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, plain, serialization.NoEncryption())
    return private + unsigned.sign(key, hashes.SHA256()).public_bytes(pem)


def main() -> None:
    parser = argparse.ArgumentParser(description="serves external.metrics.k8s.io from services' /metrics")
    parser.add_argument("--listen", default="0.0.0.0:6443", help="host:port")
    parser.add_argument("--source", action="append", default=[], help="writer=host:port or coordinator=host:port")
    options = parser.parse_args()
    with server(options.listen, dict(each.split("=", 1) for each in options.source)) as serving:
        print(f"listening on port {serving.server_address[1]}", flush=True)
        serving.serve_forever()


if __name__ == "__main__":
    main()
