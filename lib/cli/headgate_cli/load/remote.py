"""Files of buckets and web servers: found by their addresses, and copied to this machine before they are read."""

import contextlib
import fnmatch
import http.client
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol, cast
from urllib.parse import quote, unquote, urlsplit

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.hive_folders import names_a_column
from headgate_cli.reading.source import refused
from headgate_cli.reading.sources import is_data
from headgate_tables.storage.address import Scheme
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds

_BUCKETS = tuple(f"{scheme.value}://" for scheme in Scheme)
_SERVERS = ("http://", "https://")
_MARKS = "*?["
_IN_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"
"""What stays as it is in an address that is asked for; a percent sign, too, since it begins what is quoted already."""
_PIECE_BYTES = 32 << 20
_TIMEOUT_S = 60.0
_ROOM = "Name fewer files at once, or another folder, in the environment: TMPDIR."
_AGAIN = "Run the command again."
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which the same request may succeed."""


class ReadableFile(Protocol):
    """The content of a file."""

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; none at the end."""


class RemoteFile(NamedTuple):
    """``address``: without a query, which may be a signature. ``path``: its name, below folders like ``day=2026-01-01``.

    ``size``: bytes; None of a web server's. ``open``: its content; the end of the context checks that it is that of one version.
    """

    address: str
    path: PurePosixPath
    size: int | None
    open: Callable[[], contextlib.AbstractContextManager[ReadableFile]]


def is_remote(argument: str) -> bool:
    """Whether an argument of the command is the address of a bucket or a web server."""
    return argument.lower().startswith((*_BUCKETS, *_SERVERS))


def remote_files(argument: str, settings: Mapping[str, str] | None) -> list[RemoteFile]:
    """The files that an address names, by name: one file; in buckets also all below a folder (those whose suffix names a format),
    or a pattern with ``*``, ``?``, ``[…]`` and ``**`` for any folders.

    ``settings``: of the object store, as of ``open_store``. Raises CommandError, also when there is none, and TablesError.
    """
    if argument.lower().startswith(_SERVERS):
        return [_of_server(argument)]
    place, _, key = argument.partition("://")[2].partition("/")
    bucket = f"{argument.partition('://')[0]}://{place}"
    store = open_store(bucket, settings, SystemIds())
    found: dict[str, int]
    if key and not key.endswith("/") and (size := store.size(key)) is not None:
        found = {key: size}
    elif any(mark in key for mark in _MARKS):
        fixed = key[: min(key.index(mark) for mark in _MARKS if mark in key)].rpartition("/")[0]
        found = {path: size for path, size in _below(store, fixed) if _fits(path.split("/"), key.split("/"))}
    else:
        folder = key.rstrip("/")
        found = {path: size for path, size in _below(store, folder) if is_data(PurePosixPath(path).relative_to(folder))}
    if not found:
        raise refused(f"{argument}: no such file", "Check the address; of a folder, files count whose suffix names a format.")
    return [_of_bucket(store, path, size) for path, size in sorted(found.items())]


def copy(file: RemoteFile, folder: Path, copied: Callable[[int], None]) -> Path:
    """Copies a file into ``folder``, which does not exist. ``copied`` is called with the bytes of each piece.

    Raises CommandError, TablesError.
    """
    target = folder / file.path
    try:
        target.parent.mkdir(parents=True)
        opened = target.open("wb", buffering=0)
    except OSError as error:
        raise refused(
            f"{file.address}: {error.strerror}", "Fetch the file under another name, and load it from there."
        ) from error
    with opened as kept, file.open() as content:
        while piece := content.read(_PIECE_BYTES):
            try:
                kept.write(piece)
            except OSError as error:
                raise refused(f"{folder.parent}: {error.strerror}", _ROOM) from error
            copied(len(piece))
    return target


def check_room(files: Sequence[RemoteFile], folder: Path) -> None:
    """Raises CommandError when the disk of ``folder`` has no room for all files whose size is known."""
    wanted, free = sum(file.size or 0 for file in files), shutil.disk_usage(folder).free
    if wanted > free:
        raise refused(
            f"{wanted:,} bytes are to be copied, and {folder} has room for {free:,}",
            _ROOM,
        )


def _below(store: Store, folder: str) -> Iterator[tuple[str, int]]:
    """All files below a folder, with their bytes."""
    found = store.list_folder(folder, sizes=True)
    start = f"{folder}/" if folder else ""
    yield from ((start + name, found.sizes[name]) for name in found.files)
    for name in found.folders:
        yield from _below(store, start + name)


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(path[at:], pattern[1:]) for at in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])


def _kept_path(path: str) -> PurePosixPath:
    """The name of a file, and the folders right above it that are columns: nothing else that a stranger may have named."""
    *folders, name = path.split("/")
    columns: list[str] = []
    while folders and names_a_column(folders[-1]):
        columns.insert(0, folders.pop())
    return PurePosixPath(*columns, name)


def _of_bucket(store: Store, path: str, size: int) -> RemoteFile:
    address = f"{store.url}/{path}"

    @contextlib.contextmanager
    def opened() -> Iterator[ReadableFile]:
        version = store.version(path)
        with store.open_input(path) as content:
            yield content
        if store.version(path) != version:
            raise refused(f"{address} was changed while it was copied", _AGAIN)

    return RemoteFile(address, _kept_path(path), size, opened)


def _of_server(url: str) -> RemoteFile:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _no_address(url.partition("://")[0] + "://…") from None  # no part of it is known to be none of a password
    host = f"[{host}]" if host and ":" in host else host
    address = f"{parts.scheme}://{host or ''}{'' if port is None else f':{port}'}{parts.path}"
    if not host:
        raise _no_address(address)
    name = unquote(parts.path.rpartition("/")[2])
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise refused(f"{address} names no file", "Give the address of a file; only buckets have folders and patterns.")
    if parts.username is not None:
        raise refused(f"{address}: other users can read the password in the address", "Fetch the file, and load it from there.")

    @contextlib.contextmanager
    def opened() -> Iterator[ReadableFile]:
        with _answer(url, address) as answer:
            yield _Body(answer, address)

    return RemoteFile(address, PurePosixPath(name), None, opened)


def _answer(url: str, address: str) -> http.client.HTTPResponse:
    try:
        quoted = quote(url, safe=_IN_ADDRESSES)
        request = urllib.request.Request(quoted, headers={"User-Agent": "headgate"})  # noqa: S310 - http and https alone
        return cast("http.client.HTTPResponse", urllib.request.urlopen(request, timeout=_TIMEOUT_S))  # noqa: S310
    except urllib.error.HTTPError as error:
        said = f"{address}: the server answers {error.code} {error.reason}"
        raise (_not_now(said, _AGAIN) if error.code in _PASSING else refused(said, "Check the address.")) from error
    except (http.client.InvalidURL, ValueError):
        raise _no_address(address) from None  # their texts have the query
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(address, error) from error


def _no_address(address: str) -> CommandError:
    return refused(f"{address} is no address of a web server", "Give https://HOST/PATH or https://HOST:PORT/PATH.")


def _unreachable(address: str, error: Exception) -> CommandError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    passes = isinstance(reason, OSError) and not isinstance(reason, ssl.SSLError)
    return (_not_now if passes else refused)(f"{address}: {reason}", f"Check the address and the network. {_AGAIN}")


def _not_now(message: str, fix: str) -> CommandError:
    return CommandError(message, fix=fix, code=ExitCode.RETRY_LATER)


class _Body:
    """The content of an answer. A connection that breaks looks like its end, until the bytes are counted."""

    def __init__(self, answer: http.client.HTTPResponse, address: str) -> None:
        self._answer = answer
        self._address = address

    def read(self, size: int) -> bytes:
        try:
            piece = self._answer.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(self._address, error) from error
        if not piece and self._answer.length:
            raise _not_now(f"{self._address}: the connection ended {self._answer.length:,} bytes before the file", _AGAIN)
        return piece
