"""Finds a table's location: an address is used as it is; for a name, a coordinator is asked."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.options import storage_settings
from headgate_cli.table.storage import Location
from headgate_cli.wording import for_command_line
from headgate_tables.errors import DeposedError, TableOwnedError
from headgate_tables.face.owner import Table
from headgate_tables.opening import open_table

_Command = TypeVar("_Command", bound=Callable[..., object])


def locate_table(table: str, access: Access, storage: tuple[str, ...]) -> Location:
    """The location of ``table``: a URL, a path with a slash, or a name. Raises HeadgateError, CommandError."""
    if "/" in table:
        return Location(table, storage_settings(storage))
    with access.connect() as cluster:
        return Location(cluster.table(table).info.url, storage_settings(storage))


def take_over_option(command: _Command) -> _Command:
    """The option that gives a command ``take_over``, for ``open_unowned``."""
    text = "Take the table from a cluster whose coordinators have been ended; they take it back when they start."
    return click.option("--take-over", is_flag=True, help=text)(command)


@contextlib.contextmanager
def open_unowned(location: Location, *, take_over: bool) -> Iterator[Table]:
    """The table, for work that no owner does for this process. Raises TablesError; CommandError for one that a cluster owns, or
    takes back meanwhile.
    """
    with open_table(location.url, storage_options=location.options, take_over=take_over) as table:
        try:
            yield table
        except (TableOwnedError, DeposedError) as error:
            if isinstance(error, DeposedError) and not take_over:
                raise
            raise CommandError(
                for_command_line(error.message),
                fix="End its coordinators, so that they do not take the table back while this runs, and add --take-over.",
                code=ExitCode.OPERATOR,
                kind=type(error).__name__,
            ) from error
