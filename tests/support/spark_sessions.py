"""A local SparkSession made for many small jobs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
}


def start_session(jars: str, folder: Path, settings: Mapping[str, str], *, master: str = "local[2]") -> Any:
    """The caller stops it. ``jars``: files with commas between them; ``folder`` takes what Spark likes to leave lying about.
    ``master``: ``local[2,4]`` runs a task up to four times.
    """
    from pyspark.sql import SparkSession

    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC -Dderby.system.home={folder} -Djava.io.tmpdir={folder}"
    own = {"spark.jars": jars, "spark.driver.extraJavaOptions": java, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    builder = SparkSession.builder.master(master)
    for key, value in (_SMALL | own | dict(settings)).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
