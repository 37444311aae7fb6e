"""Azure Blob Storage on this machine: Microsoft's own emulator."""

import base64
import contextlib
import hashlib
import hmac
import os
import shutil
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import urlencode

import pytest

from demo.ports import free_port
from demo.s3_server import serving

ACCOUNT = "headgate"
KEY = base64.b64encode(b"any 32 bytes make an account key").decode()
_VERSION = "2021-08-06"


@dataclass(frozen=True, slots=True)
class AzureEndpoint:
    """Where Azurite listens. See ``support.stores.Endpoint``."""

    url: str
    deletes_with: str = "POST"

    @property
    def options(self) -> dict[str, str]:
        return self.options_at(self.url)

    @property
    def hudi_rs_options(self) -> dict[str, str]:
        names = {"account_name": "azure_storage_account_name", "account_key": "azure_storage_account_key"}
        names["endpoint"] = "azure_storage_endpoint"
        return {names.get(name, name): value for name, value in self.options.items()}

    def options_at(self, url: str) -> dict[str, str]:
        return {"account_name": ACCOUNT, "account_key": KEY, "endpoint": f"{url}/{ACCOUNT}", "allow_http": "true"}

    def make_bucket(self, name: str) -> str:
        self._ask("PUT", name, {"restype": "container"})
        return f"az://{name}"

    def keys(self, bucket: str) -> list[str]:
        found = ET.fromstring(self._ask("GET", bucket, {"comp": "list", "restype": "container"}))
        return [name.text or "" for name in found.findall("./Blobs/Blob/Name")]

    def _ask(self, method: str, container: str, query: Mapping[str, str]) -> bytes:
        """The second opinion on what lies there: a request signed by hand (Shared Key), without obstore."""
        path = f"/{ACCOUNT}/{container}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        asked = "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        text = method + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in headers.items()) + f"/{ACCOUNT}{path}{asked}"
        signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        request = urllib.request.Request(f"{self.url}{path}?{urlencode(query)}", method=method, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())


@contextlib.contextmanager
def azurite() -> Iterator[AzureEndpoint]:
    """npm's azurite, in memory; ``HEADGATE_AZURITE`` names its script. Skips the test where that or node is absent."""
    script, node = os.environ.get("HEADGATE_AZURITE"), shutil.which("node")
    if not script or not node:
        pytest.skip("needs node and azurite: HEADGATE_AZURITE names no main.js, or there is no node on PATH")
    port = free_port()
    server = ["env", f"AZURITE_ACCOUNTS={ACCOUNT}:{KEY}", node, script, "--blobPort", str(port)]
    # obstore asks for a version of the API that Azurite does not list, and is served as by the one before.
    with serving([*server, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"], port):
        yield AzureEndpoint(f"http://127.0.0.1:{port}")
