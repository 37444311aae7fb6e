"""Object stores: S3 and what speaks its language, Google Cloud Storage, Azure Blob Storage. Create-only by a condition.

A path is the key, byte for byte: obstore encodes it for the request only (test: a name is stored under exactly that key).
"""

import contextlib
import mmap
import tempfile  # noqa: TID251 - for a file without a name: there is none to make up, and nothing to sweep
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import ClassVar, NoReturn

import obstore
import pyarrow as pa

from headgate_tables.errors import OptionError
from headgate_tables.storage.address import Service, StoreAddress
from headgate_tables.storage.answers import AnswerError, failure, outcome_of
from headgate_tables.storage.clients import bucket_client, clients, upload_client
from headgate_tables.storage.local_files import errors_of_writes
from headgate_tables.storage.paths import check_path
from headgate_tables.storage.range_file import RangeFile
from headgate_tables.storage.spool import HashedFile
from headgate_tables.storage.store import Buffers, FolderListing, Outcome
from headgate_tables.storage.workers import Workers

_PARALLEL_REQUESTS = 16
_PAGE = 1000
_ONE_REQUEST_BYTES = 8 * 1024 * 1024
_LAST_NAME = "\U0010ffff"


class ObjectStore:
    """A prefix of a bucket. ``options`` are obstore's settings for the service as text; its environment variables fill in what
    they leave out (``clients.ENVIRONMENT``).
    """

    stages: ClassVar[bool] = False

    def __init__(self, address: StoreAddress, options: Mapping[str, str]) -> None:
        self._bucket = bucket_client(address, options)
        self._creates, self._store = clients(self._bucket)
        self._workers = Workers(_PARALLEL_REQUESTS)
        self._prefix = f"{address.prefix}/" if address.prefix else ""
        self.url: str = address.url

    def get(self, path: str) -> pa.Buffer:
        try:
            return pa.py_buffer(obstore.get(self._store, self._key(path)).bytes())
        except FileNotFoundError:
            raise
        except AnswerError as error:
            raise failure(error, self._key(path)) from None

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(RangeFile(_ObjectRanges(self, path)), mode="r")

    def size(self, path: str) -> int | None:
        found = self._head(path)
        return found["size"] if found else None

    def version(self, path: str) -> str | None:
        found = self._head(path)
        return found["e_tag"] if found else None

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        try:
            if after is None:
                return self._list(folder, sizes=sizes)
            listing = self._pick_after if self._service is Service.AZURE else self._list_after
            return listing(folder, after, sizes=sizes)
        except AnswerError as error:
            raise failure(error, self._key(folder)) from None

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        del durable  # an answered PUT always is
        try:
            obstore.put(self._creates, self._key(path), _body(content), mode="create")
        except AnswerError as error:
            return outcome_of(error, self._key(path))
        return Outcome.CREATED

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        return self._workers.map(lambda file: self.create(file[0], file[1], durable=durable), files)

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> NoReturn:
        raise _no_stage([path for path, _ in files])

    @contextlib.contextmanager
    def spool(self, path: str, staged: str) -> "Iterator[ObjectSpool]":
        del staged  # the spool has no name: nothing of a killed process is left
        with contextlib.ExitStack() as open_file:
            with errors_of_writes(tempfile.gettempdir()):
                spooled = open_file.enter_context(tempfile.TemporaryFile(buffering=0))
            spool = ObjectSpool(spooled.fileno(), lambda content: self._upload(path, content))
            open_file.callback(spool.file.end)
            yield spool

    def _upload(self, path: str, content: memoryview) -> Outcome:
        try:
            obstore.put(upload_client(self._bucket), self._key(path), content, mode="create")
        except AnswerError as error:
            return outcome_of(error, self._key(path))
        return Outcome.CREATED

    def replace(self, path: str, content: Buffers) -> None:
        try:
            obstore.put(self._store, self._key(path), _body(content), use_multipart=False)
        except AnswerError as error:
            raise failure(error, self._key(path)) from None

    def link_all(self, names: Iterable[tuple[str, str]]) -> NoReturn:
        raise _no_stage(target for _, target in names)

    def copy(self, source: str, path: str) -> None:
        # Without a condition, which few services know for copies: two copies of a file are equal.
        if self.size(path) is not None:
            return
        try:
            obstore.copy(upload_client(self._bucket), self._key(source), self._key(path))
        except FileNotFoundError:
            raise
        except AnswerError as error:
            raise failure(error, self._key(path)) from None

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        """Nothing to do: what was answered is durable."""

    def delete(self, paths: Iterable[str]) -> None:
        self._delete([self._key(path) for path in paths])

    def delete_folder(self, folder: str) -> None:
        try:
            for page in obstore.list(self._store, self._key(folder), chunk_size=_PAGE):
                self._delete([entry["path"] for entry in page if entry["path"] != self._key(folder)])
        except AnswerError as error:
            raise failure(error, self._key(folder)) from None

    def delete_empty(self, folder: str) -> None:
        """Nothing to do: a folder is a part of names."""

    def rename_folder(self, source: str, target: str) -> NoReturn:
        raise _no_stage([source, target])

    @property
    def _service(self) -> Service:
        return self._bucket.service

    def _key(self, path: str) -> str:
        check_path(path)
        if "\\" in path and self._service is Service.AZURE:
            raise OptionError(
                f"{self.url} holds no {path}: Azure makes a slash of every backslash in a name",
                fix="Keep backslashes out of partition values, or make the table with url_encode.",
            )
        return self._prefix + path

    def _head(self, path: str) -> "obstore.ObjectMeta | None":
        try:
            return obstore.head(self._store, self._key(path))
        except FileNotFoundError:
            return None
        except AnswerError as error:
            raise failure(error, self._key(path)) from None

    def _delete(self, keys: list[str]) -> None:
        if not keys:
            return
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError as error:
            if self._service is Service.S3:
                raise failure(error, keys[0]) from None
            # The other services report a missing object as an error; objects after it in the list may still be there.
            self._workers.map(self._delete_if_there, keys)
        except AnswerError as error:
            raise failure(error, keys[0]) from None

    def _delete_if_there(self, key: str) -> None:
        try:
            obstore.delete(self._store, key)
        except FileNotFoundError:
            return
        except AnswerError as error:
            raise failure(error, key) from None

    def _list(self, folder: str, *, sizes: bool) -> FolderListing:
        key = self._key(folder).rstrip("/")
        found = obstore.list_with_delimiter(self._store, key or None)
        cut = len(key) + 1 if key else 0
        # Hadoop leaves empty `folder/` objects, which obstore reports under the folder's own path.
        files = {entry["path"][cut:]: entry["size"] for entry in found["objects"] if entry["path"] != key}
        return FolderListing(list(files), [path[cut:] for path in found["common_prefixes"]], files if sizes else {})

    def _pick_after(self, folder: str, after: str, *, sizes: bool) -> FolderListing:
        """Lists all, 5000 a request. Azure's ``startFrom``, which obstore would send, is not known to every server of that kind
        (Azurite ignores it, OneLake answers with nothing).
        """
        return self._list(folder, sizes=sizes).after(after)

    def _list_after(self, folder: str, after: str, *, sizes: bool) -> FolderListing:
        """Lists from a name on. obstore has no delimiter here, so a further request skips each folder on the way.

        A `folder/` object of Hadoop's comes as a file of that name: a key's last slash is lost on this way.
        """
        base = self._key(f"{folder}/" if folder else "")
        files: dict[str, int] = {}
        folders: set[str] = set()
        start: str | None = base + after
        while start is not None:
            entries = chain.from_iterable(obstore.list(self._store, base or None, offset=start, chunk_size=_PAGE))
            start = None
            for entry in entries:
                name, below, _ = entry["path"][len(base) :].partition("/")
                if not below:
                    files[name] = entry["size"]
                elif name not in folders:
                    folders.add(name)
                    start = f"{base}{name}/{_LAST_NAME}"
                    break
        return FolderListing(list(files), list(folders), files if sizes else {}).after(after)


class ObjectSpool:
    """See ``store.Spool``: a file without a name on this machine, sent in one request."""

    def __init__(self, descriptor: int, upload: Callable[[memoryview], Outcome]) -> None:
        self.file = HashedFile(descriptor, tempfile.gettempdir())
        self._descriptor = descriptor
        self._upload = upload

    def create(self) -> Outcome:
        # Mapped, not read: its pages are the cache's, which the kernel takes back. One request, because only a plain PUT has a
        # condition with every store (W4).
        if not self.file.size:
            return self._upload(memoryview(b""))
        return self._upload(memoryview(mmap.mmap(self._descriptor, self.file.size, access=mmap.ACCESS_READ)))


class _ObjectRanges:
    def __init__(self, store: ObjectStore, path: str) -> None:
        self._client = store._store
        self._path = path
        self._key = store._key(path)
        self._store = store

    def tail(self, length: int) -> tuple[int, memoryview]:
        try:
            return self._tail_by_size(length) if self._store._service is Service.AZURE else self._tail(length)
        except FileNotFoundError:
            raise
        except AnswerError as error:
            # An empty object has no last bytes: S3 answers 416, others send all of it, which obstore does not take for a part.
            if self._store.size(self._path) == 0:
                return 0, memoryview(b"")
            raise failure(error, self._key) from None

    def _tail(self, length: int) -> tuple[int, memoryview]:
        found = obstore.get(self._client, self._key, options={"range": {"suffix": length}})
        return found.meta["size"], memoryview(found.bytes())

    def _tail_by_size(self, length: int) -> tuple[int, memoryview]:
        """Azure has no ranges that count from the end. A small object still comes in one request, with its size."""
        found = obstore.get(self._client, self._key, options={"range": (0, length)})
        size = found.meta["size"]
        return (size, memoryview(found.bytes())) if size <= length else (size, self.part(size - length, size))

    def part(self, start: int, stop: int) -> memoryview:
        cuts = [*range(start, stop, _ONE_REQUEST_BYTES), stop]
        parts = self._store._workers.map(self._one_part, list(pairwise(cuts)))
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _one_part(self, cut: tuple[int, int]) -> memoryview:
        try:
            return memoryview(obstore.get_range(self._client, self._key, start=cut[0], end=cut[1]))
        except FileNotFoundError:
            raise
        except AnswerError as error:
            raise failure(error, self._key) from None


def _body(content: Buffers) -> bytes | memoryview:
    if len(content) != 1:
        return b"".join(content)
    only = content[0]
    return only if isinstance(only, bytes) else memoryview(only).cast("B")


def _no_stage(paths: Iterable[str]) -> RuntimeError:
    return RuntimeError(
        f"{list(paths)}: an object store has no stage, links or renames; the caller has to ask Store.stages first"
    )
