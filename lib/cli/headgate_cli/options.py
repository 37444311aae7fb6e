"""Options that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from click.core import ParameterSource

from headgate_cli.cluster import Access, naming_near_tables
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_runtime.secret_settings import holds_secret, is_header, is_secret_option

BUCKETS = click.IntRange(1, 99_999_999)
"""Of a table or a partition: their numbers have eight digits in files' names."""
NAME_OR_URL = "TABLE is the name of a table of the cluster, or its address (s3://…, gs://…, abfss://…, or a path with a slash)."

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
            *arguments: object,
            connect: str,
            timeout: float,
            token: str,
            token_file: Path | None,
            tls_ca: str,
            front: bool,
            client_cert: str,
            client_key: str,
            **named: object,
        ) -> object:
            addresses = [address.strip() for address in connect.split(",") if address.strip()]
            _check_pair(client_cert, client_key)
            bearer = _token(token, token_file)
            access = Access(addresses, timeout, bearer, tls_ca, front, client_cert, client_key)
            with naming_near_tables(access, str(named.get("table_name") or named.get("name") or "")):
                return command(*arguments, access=access, **named)

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
        help="Setting of the object store, such as endpoint=URL; may be repeated. Others, and all secrets, come from AWS_*, "
        "GOOGLE_* or AZURE_*.",
    )(command)


def storage_settings(pairs: tuple[str, ...]) -> dict[str, str] | None:
    """Settings of an object store by name, from ``NAME=VALUE`` pairs; None without any. Raises CommandError; for secrets, too."""
    if any("=" not in pair for pair in pairs):
        message = "--storage wants NAME=VALUE"
        raise CommandError(message, fix="Write --storage endpoint=http://HOST:PORT, for example.", code=ExitCode.USAGE)
    options = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
    for name, value in options.items():
        if is_secret_option(name) or holds_secret(value):
            raise CommandError(
                f"--storage {name}: other users can read options of commands",
                fix="Give secrets in the environment: AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_ACCOUNT_KEY, "
                "GOOGLE_APPLICATION_CREDENTIALS (a file).",
                code=ExitCode.USAGE,
            )
    return options or None


def names(text: str) -> list[str]:
    """``a, b`` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _token(token: str, token_file: Path | None) -> str | Path:
    """A file, if it can be read again: a long command needs the token that it holds by then."""
    source = click.get_current_context().get_parameter_source("token")
    if source is ParameterSource.COMMANDLINE:
        message = "--token: other users can read options of commands"
        raise CommandError(message, fix="Give the token in HEADGATE_TOKEN or in a file: --token-file FILE.", code=ExitCode.USAGE)
    found = token if token_file is None else _read(token_file)
    if token_file is not None and not found:
        message = f"--token-file {token_file}: the file is empty"
        raise CommandError(message, fix="Give a file with a token, or leave --token-file out.", code=ExitCode.USAGE)
    if not is_header(found):
        message = "a token has visible ASCII characters alone, without spaces, and this one has others"
        raise CommandError(message, fix="Look at HEADGATE_TOKEN, or at the file of --token-file.", code=ExitCode.USAGE)
    return token_file if found and token_file is not None and token_file.is_file() else found


def _check_pair(client_cert: str, client_key: str) -> None:
    if bool(client_cert) != bool(client_key):
        message = "--client-cert and --client-key belong together"
        raise CommandError(message, fix="Give both, or none.", code=ExitCode.USAGE)


def _read(token_file: Path) -> str:
    try:
        return token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"--token-file {token_file}: {error.strerror}"
        raise CommandError(message, fix="Give a file that you can read.", code=ExitCode.USAGE) from error


_CLUSTER_OPTIONS = (
    click.option(
        "--front",
        is_flag=True,
        envvar="HEADGATE_CONNECT_FRONT",
        help="--connect names a load balancer or gateway, and nothing else is reached. Also HEADGATE_CONNECT_FRONT=1.",
    ),
    click.option(
        "--client-key",
        envvar="HEADGATE_CLIENT_KEY",
        default="",
        metavar="FILE",
        help="PEM file of its key. Also HEADGATE_CLIENT_KEY.",
    ),
    click.option(
        "--client-cert",
        envvar="HEADGATE_CLIENT_CERT",
        default="",
        metavar="FILE",
        help="PEM file of your own certificate, for services with client_ca. Also HEADGATE_CLIENT_CERT.",
    ),
    click.option(
        "--tls-ca", envvar="HEADGATE_TLS_CA", default="", help="PEM file of the cluster's certificate authority. [no TLS]"
    ),
    click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), help="File with the bearer token."),
    click.option(
        "--token",
        envvar="HEADGATE_TOKEN",
        default="",
        help="Refused, because other users could read it: give the bearer token in HEADGATE_TOKEN or --token-file.",
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
