"""S3 servers on this machine: versitygw and moto, which honour If-None-Match, and s3rver, which ignores it."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_port
from demo.s3_server import ACCESS_KEY, SECRET_KEY, Command, best, moto, serving, versitygw


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Where a server listens, and the ``storage_options`` with which ``open_store`` reaches it."""

    url: str
    options: dict[str, str]
    deletes_with: str = "POST"

    def options_at(self, url: str) -> dict[str, str]:
        """``options`` that go through a proxy at ``url``."""
        return {**self.options, "endpoint": url}

    @property
    def hudi_rs_options(self) -> dict[str, str]:
        """The same, as hudi-rs names them."""
        return {f"aws_{name}": value for name, value in self.options.items()}

    def client(self) -> Any:
        """A boto3 client: the second opinion on what lies in the bucket."""
        import boto3  # the interop suite, which starts servers as well, goes without

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
def s3_server(command: Command, folder: Path) -> Iterator[S3Endpoint]:
    """A server of ``demo.s3_server`` in a process of its own, so that its threads and warnings stay out of ours."""
    port = free_port()
    with serving(command(port, folder), port):
        yield endpoint_at(port, access_key=ACCESS_KEY, secret=SECRET_KEY)


@contextlib.contextmanager
def real_s3(folder: Path) -> Iterator[S3Endpoint]:
    """versitygw where it is there, else moto."""
    with s3_server(best(), folder) as endpoint:
        yield endpoint


@contextlib.contextmanager
def named_s3(name: str, folder: Path) -> Iterator[S3Endpoint]:
    """``moto`` or ``versitygw``; skips the test where that is absent."""
    if name == "versitygw" and "HEADGATE_VERSITYGW" not in os.environ:
        pytest.skip("needs versitygw, which ./task builds where Go is installed")
    with s3_server({"moto": moto, "versitygw": versitygw}[name], folder) as endpoint:
        yield endpoint


@contextlib.contextmanager
def s3rver_s3(folder: Path) -> Iterator[S3Endpoint]:
    """npm's s3rver; ``HEADGATE_S3RVER`` names its ``bin/s3rver.js``. Skips the test where that or node is absent."""
    script, node = os.environ.get("HEADGATE_S3RVER"), shutil.which("node")
    if not script or not node:
        pytest.skip("needs node and s3rver: HEADGATE_S3RVER names no s3rver.js, or there is no node on PATH")
    port = free_port()
    command = [node, script, "-d", str(folder), "-a", "127.0.0.1", "-p", str(port), "-s", "--no-vhost-buckets"]
    with serving(command, port):
        yield endpoint_at(port, access_key="S3RVER", secret="S3RVER")


def endpoint_at(port: int, *, access_key: str, secret: str) -> S3Endpoint:
    """A server on this machine, for who has this key."""
    url = f"http://127.0.0.1:{port}"
    options = {
        "endpoint": url,
        "region": "us-east-1",
        "access_key_id": access_key,
        "secret_access_key": secret,
        "allow_http": "true",
    }
    return S3Endpoint(url, options)
