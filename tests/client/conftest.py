"""A scripted cluster of two writers; modules that want another one define their own."""

from collections.abc import AsyncIterator

import pytest

from support.scripted_service import Cluster, scripted_cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with scripted_cluster(writers=2) as cluster:
        yield cluster
