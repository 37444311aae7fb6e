"""Options that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

_Command = TypeVar("_Command", bound=Callable[..., object])


def cluster_options(timeout_s: float = 5.0) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Options that give a command ``access``: address and credentials. ``timeout_s``: the default of ``--timeout``."""
    timeout = click.option(
        "--timeout",
        default=timeout_s,
        show_default=True,
        type=click.FloatRange(0.1),
        help="Seconds to wait for an answer, through breaks and takeovers.",
    )

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(command)
        def with_access(
            *arguments: object, connect: str, timeout: float, token: str, token_file: Path | None, tls_ca: str, **named: object
        ) -> object:
            addresses = [address.strip() for address in connect.split(",") if address.strip()]
            return command(*arguments, access=Access(addresses, timeout, _token(token, token_file), tls_ca), **named)

        for option in (*_CLUSTER_OPTIONS, timeout):
            with_access = option(with_access)
        return with_access

    return decorate


def storage_option(command: _Command) -> _Command:
    """The option that gives a command ``storage``, for ``storage_settings``."""
    return click.option(
        "--storage",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting of the object store, such as endpoint=URL; may be repeated. Others come from AWS_*, GOOGLE_* or AZURE_*.",
    )(command)


def storage_settings(pairs: tuple[str, ...]) -> dict[str, str] | None:
    """Settings of an object store by name, from ``NAME=VALUE`` pairs; None without any. Raises CommandError."""
    if wrong := [pair for pair in pairs if "=" not in pair]:
        message = f"--storage {wrong[0]!r} is not NAME=VALUE"
        raise CommandError(message, fix="Write --storage endpoint=http://HOST:PORT, for example.", code=ExitCode.USAGE)
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)} or None


def _token(token: str, token_file: Path | None) -> str:
    if token_file is None:
        return token
    try:
        return token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"--token-file {token_file}: {error.strerror}"
        raise CommandError(message, fix="Give a file that you can read.", code=ExitCode.USAGE) from error


_CLUSTER_OPTIONS = (
    click.option(
        "--tls-ca", envvar="HEADGATE_TLS_CA", default="", help="PEM file of the cluster's certificate authority. [no TLS]"
    ),
    click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), help="File with the bearer token."),
    click.option(
        "--token",
        envvar="HEADGATE_TOKEN",
        default="",
        help="Bearer token. Other users can read it here; prefer HEADGATE_TOKEN or --token-file.",
    ),
    click.option(
        "--connect",
        envvar="HEADGATE_CONNECT",
        default="localhost:7070",
        show_default=True,
        metavar="HOST:PORT,…",
        help="Addresses of coordinators; one is enough. Also HEADGATE_CONNECT.",
    ),
)
