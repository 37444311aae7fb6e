"""Who does the work: the owner of a cluster's table, asked by name, or this process, on a table given by its address."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import click
from google.protobuf.message import Message

from headgate.maintenance import Maintenance
from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.options import cluster_options, storage_option, storage_settings
from headgate_cli.output import json_option
from headgate_tables import hudi
from headgate_tables.errors import TableOwnedError

_T = TypeVar("_T")
_TIMEOUT_S = 10.0


def table_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument TABLE and the options that go with it; the command gets the output, ``table_name``, ``access``, ``storage``.

    Other arguments stand below it: click takes them in that order.
    """
    for wrap in (
        click.pass_obj,
        json_option,
        storage_option,
        cluster_options(_TIMEOUT_S),
        click.argument("table_name", metavar="TABLE"),
    ):
        command = wrap(command)
    return command


def is_address(table: str) -> bool:
    """s3://…, file:///… or a path with a slash; anything else is a name."""
    return "/" in table


def ask_owner(access: Access, table: str, call: Callable[[Maintenance], Awaitable[_T]]) -> _T:
    """Raises HeadgateError."""

    async def ask() -> _T:
        async with access.connect_async() as connection:
            return await call(Maintenance(connection, table))

    return asyncio.run(ask())


@contextlib.contextmanager
def opened(address: str, storage: tuple[str, ...]) -> Iterator[hudi.Table]:
    """The table, for work by this process. Raises TablesError; CommandError for one that a cluster holds."""
    with hudi.open_table(address, storage_options=storage_settings(storage)) as table:
        try:
            yield table
        except TableOwnedError as error:
            raise CommandError(
                error.message,
                fix=f"Ask its owner: give its name ({table.name}) instead of its address, with --connect HOST:PORT.",
                code=ExitCode.OPERATOR,
                kind="TableOwnedError",
            ) from error


def plain(message: Message) -> dict[str, Any]:
    """A message as a record, with all of its fields."""
    record: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None:
            record[field.name] = [plain(each) for each in value]
        else:
            record[field.name] = list(value) if field.is_repeated else value
    return record
