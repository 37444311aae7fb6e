"""S3 servers on this machine: moto's, which honours If-None-Match, and s3rver, which ignores it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

_MOTO = Path(__file__).parents[2] / "demo/moto_server.py"


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Where a server listens, and the ``storage_options`` with which ``open_store`` reaches it."""

    url: str
    options: dict[str, str]

    @property
    def hudi_rs_options(self) -> dict[str, str]:
        """The same, as hudi-rs names them."""
        return {f"aws_{name}": value for name, value in self.options.items()}

    def client(self) -> Any:
        """A boto3 client: the second opinion on what lies in the bucket."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=self.options["region"],
            aws_access_key_id=self.options["access_key_id"],
            aws_secret_access_key=self.options["secret_access_key"],
        )

    def make_bucket(self, name: str) -> str:
        """Makes an empty bucket and returns its ``s3://`` address."""
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return f"s3://{name}"

    def keys(self, bucket: str) -> list[str]:
        """All keys of a bucket, as the server has them."""
        client = self.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        found = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        client.close()
        return found


@contextlib.contextmanager
def moto_s3() -> Iterator[S3Endpoint]:
    """A moto server in a process of its own, so that its threads and warnings stay out of ours."""
    port = _free_port()
    command = [sys.executable, str(_MOTO), str(port)]
    with _server(command, port):
        yield _endpoint(port, access_key="test", secret="test")


@contextlib.contextmanager
def s3rver_s3(folder: Path) -> Iterator[S3Endpoint]:
    """npm's s3rver; ``HEADGATE_S3RVER`` names its ``bin/s3rver.js``. Skips the test where that or node is absent."""
    script, node = os.environ.get("HEADGATE_S3RVER"), shutil.which("node")
    if not script or not node:
        pytest.skip("needs node and s3rver: HEADGATE_S3RVER names no s3rver.js, or there is no node on PATH")
    port = _free_port()
    command = [node, script, "-d", str(folder), "-a", "127.0.0.1", "-p", str(port), "-s", "--no-vhost-buckets"]
    with _server(command, port):
        yield _endpoint(port, access_key="S3RVER", secret="S3RVER")


def _endpoint(port: int, *, access_key: str, secret: str) -> S3Endpoint:
    url = f"http://127.0.0.1:{port}"
    options = {
        "endpoint": url,
        "region": "us-east-1",
        "access_key_id": access_key,
        "secret_access_key": secret,
        "allow_http": "true",
    }
    return S3Endpoint(url, options)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _server(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_listens(process, port)
            yield
        finally:
            process.kill()  # asked to end, one waits for its clients and the other can miss it


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(1500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"{process.args!r} ended with {process.wait(timeout=0.02)} before it listened")
    raise RuntimeError(f"{process.args!r} did not listen on port {port} within 30 s")
