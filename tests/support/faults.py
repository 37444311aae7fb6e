"""A local store that fails at one call: the process dies there, or the store answers with an error and then works again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import pyarrow as pa

from headgate_tables.errors import RetryLater
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.spool import LocalSpool
from headgate_tables.storage.store import Buffers, FolderListing, Outcome
from headgate_tables.system import Ids

_T = TypeVar("_T")


class KilledError(BaseException):
    """Stands for kill -9: no handler of the program may take it for an error of the store."""


READS = ("get", "open_input", "size", "version", "list_folder")
"""How calls begin that change nothing: a kill there leaves what the change before left."""


@dataclass
class Fault:
    """What happens at the ``at``-th call (from 1): ``error()`` is raised, before or ``after`` the call took effect.

    ``dies``: every later call fails too. ``happened``: name and path of the call, once it was met. A ``create`` that took
    effect answers UNKNOWN instead of an error that says that nothing was done: that is the store's contract.
    """

    at: int
    error: Callable[[], BaseException] = KilledError
    after: bool = False
    dies: bool = True
    calls: int = 0
    happened: str = ""


class FailingStore(LocalStore):
    """Calls for many files count once per file, and are made one after the other. Without a ``fault`` it just works."""

    def __init__(self, root: Path, ids: Ids, *, anchor: str = "") -> None:
        super().__init__(str(root), ids, anchor=anchor)
        self.fault: Fault | None = None

    def _call(self, name: str, work: Callable[[], _T]) -> _T:
        fault = self.fault
        if fault is None:
            return work()
        fault.calls += 1
        if fault.happened and fault.dies:
            raise fault.error()
        if fault.calls != fault.at:
            return work()
        fault.happened = name
        if fault.after:
            work()
        raise fault.error()

    def get(self, path: str) -> pa.Buffer:
        return self._call(f"get {path}", lambda: super(FailingStore, self).get(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._call(f"open_input {path}", lambda: super(FailingStore, self).open_input(path))

    def size(self, path: str) -> int | None:
        return self._call(f"size {path}", lambda: super(FailingStore, self).size(path))

    def version(self, path: str) -> str | None:
        return self._call(f"version {path}", lambda: super(FailingStore, self).version(path))

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        return self._call(
            f"list_folder {folder}", lambda: super(FailingStore, self).list_folder(folder, after=after, sizes=sizes)
        )

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        try:
            return self._call(f"create {path}", lambda: super(FailingStore, self).create(path, content, durable=durable))
        except RetryLater:
            if self.fault is not None and self.fault.after and self.fault.calls == self.fault.at:
                return Outcome.UNKNOWN
            raise

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        return [self.create(path, content, durable=durable) for path, content in files]

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        for path, content in files:
            self._call(f"stage {path}", lambda one=(path, content): super(FailingStore, self).stage([one]))  # type: ignore[misc]

    @contextmanager
    def spool(self, path: str, staged: str) -> Iterator[LocalSpool]:
        with super().spool(path, staged) as opened:
            create = opened.create
            opened.create = lambda: self._call(f"create {path}", create)  # type: ignore[method-assign]
            yield opened

    def replace(self, path: str, content: Buffers) -> None:
        self._call(f"replace {path}", lambda: super(FailingStore, self).replace(path, content))

    def link_all(self, names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        def link(pair: tuple[str, str]) -> Outcome | None:
            return self._call(f"link {pair[1]}", lambda: super(FailingStore, self).link_all([pair])[0])

        return list(map(link, names))

    def copy(self, source: str, path: str) -> None:
        self._call(f"copy {path}", lambda: super(FailingStore, self).copy(source, path))

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        self._call("sync", lambda: super(FailingStore, self).sync(paths, folders))

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._call(f"delete {path}", lambda one=path: super(FailingStore, self).delete([one]))  # type: ignore[misc]

    def delete_folder(self, folder: str) -> None:
        self._call(f"delete_folder {folder}", lambda: super(FailingStore, self).delete_folder(folder))

    def delete_empty(self, folder: str) -> None:
        self._call(f"delete_empty {folder}", lambda: super(FailingStore, self).delete_empty(folder))

    def rename_folder(self, source: str, target: str) -> None:
        self._call(f"rename_folder {source}", lambda: super(FailingStore, self).rename_folder(source, target))


class InPlaceStore(FailingStore):
    """As an object store: data files are created under their final names, and those of dead instants are swept (rule W3)."""

    stages: ClassVar[bool] = False
