"""One Spark for the whole run. `./task interop` sets the environment that this needs."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.spark_hudi import SparkTable, start_spark
from support.spark_rows import MakeTable


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_spark(os.environ["HEADGATE_HUDI_JAR"], tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def make(spark: Any, tmp_path: Path) -> MakeTable:
    def make_table(name: str = "t", **options: Any) -> SparkTable:
        return SparkTable(spark, tmp_path, name, **options)

    return make_table
