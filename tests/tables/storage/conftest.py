from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds
from support.s3 import S3Endpoint, named_s3

Servers = Callable[[str], S3Endpoint]
"""One server of each kind for the whole run, started when it is first asked for."""


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    running: dict[str, S3Endpoint] = {}
    with ExitStack() as stack:

        def server(name: str) -> S3Endpoint:
            if name not in running:
                running[name] = stack.enter_context(named_s3(name, tmp_path_factory.mktemp(name)))
            return running[name]

        yield server


@pytest.fixture(params=["versitygw", "moto"])
def s3(request: pytest.FixtureRequest, servers: Servers) -> S3Endpoint:
    """The same answers are asked of both servers."""
    return servers(request.param)


@pytest.fixture
def bucket(s3: S3Endpoint) -> str:
    """The name of a fresh bucket there."""
    return fresh_bucket(s3)


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "table"), None, SystemIds())


@pytest.fixture
def remote(s3: S3Endpoint, bucket: str) -> Store:
    return open_store(f"s3://{bucket}/some/table", s3.options, SystemIds())


@pytest.fixture(params=["local", "versitygw", "moto"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def options(kind: str, servers: Servers) -> dict[str, str] | None:
    """Storage options with which another process reaches ``store``."""
    return None if kind == "local" else servers(kind).options


@pytest.fixture
def store(kind: str, servers: Servers, tmp_path: Path) -> Store:
    """The same behaviour is asked of a local folder and of S3."""
    if kind == "local":
        return open_store(str(tmp_path / "table"), None, SystemIds())
    return open_store(f"s3://{fresh_bucket(servers(kind))}/some/table", servers(kind).options, SystemIds())


def fresh_bucket(s3: S3Endpoint) -> str:
    name = f"bucket-{SystemIds().token()}"
    s3.make_bucket(name)
    return name
