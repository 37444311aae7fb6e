"""One Spark 4 for the whole run, with nothing but this project in it. `./task spark` sets the environment that this needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate_spark.source import register


def start(folder: Path) -> Any:
    """``folder`` takes what Spark leaves lying about."""
    builder = SparkSession.builder.master("local[2]").appName("source")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={folder}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


@pytest.fixture(scope="session")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a cluster of this run leaves its credentials, and programs and Spark's tasks find them."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def engine(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    del state_home  # before Spark starts, whose tasks have its environment
    session = start(tmp_path_factory.mktemp("spark"))
    register(session)
    yield session
    session.stop()


@pytest.fixture
def spark(engine: Any) -> Iterator[Any]:
    """Without the views of tests before it: all have one session, as Spark plans ``rdd`` with the settings of the first one."""
    yield engine
    for each in engine.catalog.listTables():
        if each.isTemporary:
            engine.catalog.dropTempView(each.name)
