"""Spark for one command: its session, the rows of a source, and errors of both as the command's own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_Command = TypeVar("_Command", bound=Callable[..., object])
FORMATS = ("parquet", "csv", "json", "orc")
_BY_SUFFIX = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}
_STRICT: Mapping[str, Mapping[str, str]] = {
    "csv": {"header": "true", "enforceSchema": "false", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
}
"""Spark's own defaults make null of a value that it cannot read, and give a CSV's columns to the table's by position."""
_CASE = "spark.sql.caseSensitive"


def session_options(master: str, *, default: str | None = None) -> Callable[[_Command], _Command]:
    """Adds ``--master``, with this help, and ``--conf``, which a command gets as ``master`` and ``conf``."""
    setting = "Setting of Spark; may be repeated." if default else "With --master: setting of Spark; may be repeated."

    def add(command: _Command) -> _Command:
        command = click.option("--conf", multiple=True, metavar="NAME=VALUE", help=setting)(command)
        return click.option("--master", default=default, show_default=bool(default), metavar="URL", help=master)(command)

    return add


def check_installed(what: str, instead: str) -> None:
    """Raises CommandError without PySpark. ``what``: as "a bulk load". ``instead``: a way without Spark, as a sentence."""
    try:
        import pyspark
    except ImportError as error:
        raise CommandError(
            f"{what} runs on Spark, and {error.name or 'pyspark'} is not installed here",
            fix=f"pip install 'headgate-cli[spark]' (it needs Java 17, too). {instead}",
            code=ExitCode.OPERATOR,
            kind="SparkMissing",
        ) from error
    del pyspark


@contextlib.contextmanager
def start(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session, which is stopped at the end; one that runs already is used and left alone. Raises CommandError without Java."""
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        yield active
        return
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or tasks run in whatever python3 is found on PATH
    builder = SparkSession.builder.appName("headgate").config("spark.ui.showConsoleProgress", "false")
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise CommandError(
            f"Spark did not start: {_first_line(str(error))}",
            fix="Look at what Spark printed above. It needs Java 17 (JAVA_HOME), and --master has to be reachable.",
            code=ExitCode.OPERATOR,
            kind="SparkFailed",
        ) from error
    try:
        yield session
    finally:
        session.stop()


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """The values of an option that is repeated as NAME=VALUE. Raises CommandError."""
    wrong = [each for each in given if "=" not in each]
    if wrong:
        raise CommandError(f"{option} {wrong[0]}: no value", fix=f"Write {option} NAME=VALUE.", code=ExitCode.USAGE)
    return {name: value for name, _, value in (each.partition("=") for each in given)}


def read_table(spark: SparkSession, source: str, kind: str, options: Mapping[str, str]) -> DataFrame:
    """The rows of a table of any format that has types. Raises CommandError for text."""
    if kind in _STRICT:
        raise CommandError(
            f"--format {kind} has no types",
            fix="Create the table (`headgate table create`), and load the files (`headgate bulk-load`).",
            code=ExitCode.USAGE,
        )
    return spark.read.format(kind).options(**options).load(source)


def read_source(
    spark: SparkSession, sources: Sequence[str], kind: str, options: Mapping[str, str], schema: pa.Schema
) -> DataFrame:
    """The rows of files and folders. Formats of text are read with the table's columns, and strictly; but fields of JSON that
    these lack are left out, see ``fields_of_json``.
    """
    reader = _reader(spark, sources, kind, options)
    if kind in _STRICT:
        from headgate_spark.types import struct_of

        reader = reader.schema(struct_of(schema))
    return reader.load(list(sources))


def fields_of_json(spark: SparkSession, sources: Sequence[str], options: Mapping[str, str]) -> StructType:
    """The fields that objects in the files have at any depth, by a pass over the files, of which there has to be one. Values are
    texts, keys of maps are fields, and a field that has nothing but ``{}`` is left out.
    """
    # What cannot be read is an error of the load itself, which names it better.
    reader = _reader(spark, sources, "json", options).option("mode", "DROPMALFORMED").option("primitivesAsString", "true")
    before = spark.conf.get(_CASE)
    spark.conf.set(_CASE, "true")  # or keys of a map that differ by case alone are refused as one column twice
    try:
        return reader.load(list(sources)).schema
    finally:
        spark.conf.set(_CASE, before)


def _reader(spark: SparkSession, sources: Sequence[str], kind: str, options: Mapping[str, str]) -> DataFrameReader:
    return spark.read.format(kind).options(**{**_STRICT.get(kind, {}), **_separator(sources, kind, options), **options})


def format_of(sources: Sequence[str]) -> str:
    """By the suffix of the first source, past one of a compression; a folder, and anything else, is Parquet."""
    return _BY_SUFFIX.get(_suffix(sources[0]), "parquet")


def _suffix(source: str) -> str:
    suffixes = [each for each in PurePosixPath(source).suffixes if each not in (".gz", ".bz2", ".zst")]
    return suffixes[-1].lower() if suffixes else ""


def _separator(sources: Sequence[str], kind: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """A tab for .tsv. Spark takes ``sep`` before ``delimiter``, so beside either of them nothing is set."""
    given = {"sep", "delimiter"} & {name.lower() for name in options}
    tabs = kind == "csv" and all(_suffix(source) == ".tsv" for source in sources)
    return {"sep": "\t"} if tabs and not given else {}


@contextlib.contextmanager
def spark_errors(fix: str) -> Iterator[None]:
    """Raises CommandError for what Spark raises; errors of the table library pass. ``fix``: what to do when a job fails."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        raise CommandError(
            f"Spark: {_first_line(str(error))}",
            fix="Check SOURCE, --format and --option.",
            code=ExitCode.FIX_CALL,
            kind="SparkRefused",
        ) from error
    except Exception as error:
        if not type(error).__module__.startswith(("py4j.", "pyspark.")):  # py4j comes with PySpark, and is no dependency
            raise
        raise CommandError(
            f"Spark failed: {_cause(error)}",
            fix=fix,
            code=ExitCode.OPERATOR,
            kind="SparkFailed",
        ) from error


def _cause(error: Any) -> str:
    """The innermost cause that Java names."""
    causes = re.findall(r"^\s*Caused by: (.+)$", str(error), re.MULTILINE)
    return _first_line(causes[-1] if causes else str(error))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
