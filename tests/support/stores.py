"""Object stores on this machine, one of each kind, behind one face."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from support.azurite import azurite
from support.gcs import gcs
from support.s3 import named_s3

KINDS = ["versitygw", "moto", "gcs", "azurite"]


class Endpoint(Protocol):
    """A running server."""

    @property
    def url(self) -> str:
        """``http://host:port``."""

    @property
    def deletes_with(self) -> str:
        """The method of the request that deletes objects."""

    @property
    def options(self) -> dict[str, str]:
        """The ``storage_options`` with which ``open_store`` reaches it."""

    @property
    def hudi_rs_options(self) -> dict[str, str]:
        """The same, as hudi-rs names them."""

    def options_at(self, url: str) -> dict[str, str]:
        """``options`` that go through a proxy at ``url``."""

    def make_bucket(self, name: str) -> str:
        """Makes an empty bucket and returns its address."""

    def keys(self, bucket: str) -> list[str]:
        """All keys of a bucket, as the server has them."""


@contextlib.contextmanager
def object_store(kind: str, folder: Path) -> Iterator[Endpoint]:
    """The server of a kind of ``KINDS``; skips the test where that is absent."""
    match kind:
        case "gcs":
            with gcs() as endpoint:
                yield endpoint
        case "azurite":
            with azurite() as azure:
                yield azure
        case _:
            with named_s3(kind, folder) as s3:
                yield s3
