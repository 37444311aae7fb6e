from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import FaultyProxy, faulty_proxy
from support.s3 import S3Endpoint
from support.stores import KINDS, Endpoint, object_store

Servers = Callable[[str], Endpoint]
"""One server of each kind for the whole run, started when it is first asked for."""


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    running: dict[str, Endpoint] = {}
    with ExitStack() as stack:

        def server(name: str) -> Endpoint:
            if name not in running:
                running[name] = stack.enter_context(object_store(name, tmp_path_factory.mktemp(name)))
            return running[name]

        yield server


@pytest.fixture(params=["versitygw", "moto"])
def s3(request: pytest.FixtureRequest, servers: Servers) -> S3Endpoint:
    """The same answers are asked of both servers."""
    found = servers(request.param)
    assert isinstance(found, S3Endpoint)
    return found


@pytest.fixture
def bucket(s3: S3Endpoint) -> str:
    """The name of a fresh bucket there."""
    name = fresh_name()
    s3.make_bucket(name)
    return name


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "table"), None, SystemIds())


@pytest.fixture
def remote(s3: S3Endpoint, bucket: str) -> Store:
    return open_store(f"s3://{bucket}/some/table", s3.options, SystemIds())


@pytest.fixture(params=["local", *KINDS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def options(kind: str, servers: Servers) -> dict[str, str] | None:
    """Storage options with which another process reaches ``store``."""
    return None if kind == "local" else servers(kind).options


@pytest.fixture
def store(kind: str, servers: Servers, tmp_path: Path) -> Store:
    """The same behaviour is asked of a local folder and of every kind of object store."""
    if kind == "local":
        return open_store(str(tmp_path / "table"), None, SystemIds())
    endpoint = servers(kind)
    return open_store(f"{endpoint.make_bucket(fresh_name())}/some/table", endpoint.options, SystemIds())


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, servers: Servers) -> Endpoint:
    """The same behaviour is asked of every kind of object store."""
    return servers(request.param)


@pytest.fixture
def proxy(server: Endpoint) -> Iterator[FaultyProxy]:
    with faulty_proxy(server.url) as proxy:
        yield proxy


@pytest.fixture
def address(server: Endpoint) -> str:
    """Of a folder in a fresh bucket there."""
    return f"{server.make_bucket(fresh_name())}/some/table"


@pytest.fixture
def straight(server: Endpoint, address: str) -> Store:
    return open_store(address, server.options, SystemIds())


@pytest.fixture
def behind(server: Endpoint, proxy: FaultyProxy, address: str) -> Store:
    """The same store, reached through the proxy."""
    return open_store(address, {**server.options_at(proxy.url), "timeout": "500ms"}, SystemIds())


def fresh_name() -> str:
    return f"bucket-{SystemIds().token()}"
