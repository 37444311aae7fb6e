"""The two things that Spark does in the demo, in an environment of its own, as users do them: a bulk load and a query."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_PYTHON: Final = os.environ.get("HEADGATE_SPARK_PYTHON", sys.executable)
_QUERY: Final = """
import json, sys
from pyspark.sql import SparkSession
from headgate_spark import read
url, condition = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(json.dumps({"rows": read(spark, url, columns=["id"], filter=condition).count()}))
"""


def bulk_load(source: Path, url: str, log: Path) -> dict[str, Any]:
    """`headgate bulk-load` of a Parquet file; returns the commit. Raises SystemExit."""
    command = ["-m", "headgate_cli", "bulk-load", str(source), "--table", url, "--master", "local[2]", "--json"]
    *_, loaded = _lines(command, log)
    return loaded


def count(url: str, condition: str, log: Path) -> int:
    """The rows that a Spark job finds with ``headgate_spark.read``. Raises SystemExit."""
    (found,) = _lines(["-c", _QUERY, url, condition], log)
    return int(found["rows"])


def _lines(arguments: Sequence[str], log: Path) -> list[dict[str, Any]]:
    with log.open("ab") as errors:
        done = subprocess.run([_PYTHON, *arguments], stdout=subprocess.PIPE, stderr=errors, check=False)
    if done.returncode:
        raise SystemExit(f"Spark's job failed ({done.returncode}); {log} has what it said.")
    return [json.loads(line) for line in done.stdout.splitlines()]
