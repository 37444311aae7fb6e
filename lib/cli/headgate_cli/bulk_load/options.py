"""Options of commands that run on Spark."""

from collections.abc import Callable
from typing import TypedDict, TypeVar

import click

from headgate_cli.spark_session import session_options

_Command = TypeVar("_Command", bound=Callable[..., object])


class SparkOptions(TypedDict):
    """What ``spark_options`` gives a command, by click's names."""

    reading: tuple[str, ...]
    tasks: int | None
    master: str
    conf: tuple[str, ...]


def spark_options(command: _Command) -> _Command:
    """Options of Spark's reader, of its tasks and of its session."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--option", "reading", multiple=True, metavar="NAME=VALUE", help="Option of Spark's reader; may be repeated."),
    click.option(
        "--tasks",
        type=click.IntRange(1),
        help="Tasks that write. [1 up to 4 MiB; a bucket each, or spark.sql.shuffle.partitions]",
    ),
    session_options("Spark's master: spark://…, k8s://…, yarn.", default="local[*]"),
)
