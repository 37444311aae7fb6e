"""One Spark for the whole run. `./task spark` sets the environment that this needs."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.spark_hudi import start_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_spark(os.environ["HEADGATE_HUDI_JAR"], tmp_path_factory.mktemp("spark"), master="local[2,4]")
    yield session
    session.stop()
