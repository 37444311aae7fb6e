"""Imports all of the CLI but what needs PySpark, which is not in every environment: for ``support.fork_server``."""

import importlib
import pkgutil

import headgate_cli
from headgate_runtime.without_pandas import run_without_pandas

_ON_SPARK = ("headgate_cli.bulk_load", "headgate_cli.spark_session")

run_without_pandas()
for module in pkgutil.walk_packages(headgate_cli.__path__, "headgate_cli."):
    if not module.name.startswith(_ON_SPARK) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
