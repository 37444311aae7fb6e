"""Google Cloud Storage on this machine: the server of ``gcs_server.py``."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3

from demo.ports import free_port
from demo.s3_server import serving


@dataclass(frozen=True, slots=True)
class GcsEndpoint:
    """Where the server listens. See ``support.stores.Endpoint``."""

    url: str
    deletes_with: str = "DELETE"

    @property
    def options(self) -> dict[str, str]:
        return self.options_at(self.url)

    @property
    def hudi_rs_options(self) -> dict[str, str]:
        # Its older client knows no bearer token, only a key without OAuth.
        key = {"gcs_base_url": self.url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        return {"google_service_account_key": json.dumps(key), "allow_http": "true"}

    def options_at(self, url: str) -> dict[str, str]:
        return {"base_url": url, "bearer_token": "any", "allow_http": "true"}

    def make_bucket(self, name: str) -> str:
        client = self._client()
        client.create_bucket(Bucket=name)
        client.close()
        return f"gs://{name}"

    def keys(self, bucket: str) -> list[str]:
        client = self._client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        found = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        client.close()
        return found

    def _client(self) -> Any:
        named = {"region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any"}
        return boto3.client("s3", endpoint_url=self.url, **named)


@contextlib.contextmanager
def gcs() -> Iterator[GcsEndpoint]:
    """A server of its own, empty."""
    port = free_port()
    with serving([sys.executable, "-m", "support.gcs_server", str(port)], port):
        yield GcsEndpoint(f"http://127.0.0.1:{port}")
