from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds
from support.s3 import S3Endpoint, moto_s3


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Endpoint]:
    with moto_s3() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(moto: S3Endpoint) -> str:
    """The name of a fresh bucket on moto."""
    name = f"bucket-{SystemIds().token()}"
    moto.make_bucket(name)
    return name


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "table"), None, SystemIds())


@pytest.fixture
def remote(moto: S3Endpoint, bucket: str) -> Store:
    return open_store(f"s3://{bucket}/some/table", moto.options, SystemIds())


@pytest.fixture(params=["local", "remote"])
def store(request: pytest.FixtureRequest) -> Store:
    """The same behaviour is asked of a local folder and of S3."""
    return request.getfixturevalue(request.param)
