"""Where a maintenance command runs: at the owner of a cluster's table, given by name, or in this process, on an address."""

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
from headgate_cli.wording import for_command_line
from headgate_tables.errors import TableOwnedError
from headgate_tables.face.owner import Table
from headgate_tables.opening import open_table

_T = TypeVar("_T")
_TIMEOUT_S = 10.0


def table_command(command: Callable[..., object]) -> Callable[..., object]:
    """Gives a command the output, the argument ``table_name`` and the options ``access`` and ``storage``.

    Decorators of further arguments stand below it: click takes arguments in that order.
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
    """Whether ``table`` is a URL or a path with a slash; anything else is a name."""
    return "/" in table


def call_owner(access: Access, table: str, call: Callable[[Maintenance], Awaitable[_T]]) -> _T:
    """The result of a call to the table's owner. Raises HeadgateError."""

    async def ask() -> _T:
        async with access.connect_async() as connection:
            return await call(Maintenance(connection, table))

    return asyncio.run(ask())


@contextlib.contextmanager
def open_address(address: str, storage: tuple[str, ...]) -> Iterator[Table]:
    """The table at an address, for work in this process. Raises TablesError; CommandError for a table that a cluster owns."""
    with open_table(address, storage_options=storage_settings(storage)) as table:
        try:
            yield table
        except TableOwnedError as error:
            raise CommandError(
                for_command_line(error.message),
                fix=f"Give its name ({table.name}) instead of its address, so that its owner does it, with --connect HOST:PORT.",
                code=ExitCode.OPERATOR,
                kind="TableOwnedError",
            ) from error


def fields_of(message: Message) -> dict[str, Any]:
    """All fields of a message by name; nested messages and repeated fields become dicts and lists."""
    record: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None:
            record[field.name] = [fields_of(each) for each in value]
        else:
            record[field.name] = list(value) if field.is_repeated else value
    return record
