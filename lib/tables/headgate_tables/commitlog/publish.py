"""From a won slot to the files that readers see (rules P1, P2, T6). Repeatable, with the same result in every process.

A COMMIT slot names its data files with the stage they wait in, and holds the exact bytes of every derived file; the
completed instant is the last of them, so readers see the commit only when all else is in place.
"""

import base64
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.records import DataFile, DerivedFile, ReplacedFile
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.win import create_for_certain, unchecked
from headgate_tables.errors import CorruptFileError, MissingFileError
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import Clock

REVOKED = ".revoked"


Usable = Callable[[str, bytes], bool | None]
"""Given the path of a derived file and the content found there: True if that serves as well as ours, False if ours has to
replace it, None if no other program may create a file of this name.
"""


def ours_alone(_path: str, _found: bytes) -> None:
    """For a table whose derived files no other program creates."""


def derived_files(slot: Slot) -> list[DerivedFile]:
    """The files that the slot derives, in the order of their creation."""
    try:
        return [(path, base64.b64decode(content)) for path, content in slot.publish]
    except ValueError as error:
        raise CorruptFileError(
            f"slot {slot.n} holds a file whose content is no base64", fix="Restore the commit log from a copy of the table."
        ) from error


def given_up(slots: Sequence[Slot]) -> set[str]:
    """Names that these slots declared dead: no earlier slot may put them in place again (rule T6)."""
    return {name for slot in slots for name in slot.names}


def replaced_after(n: int, slots: Sequence[Slot]) -> set[str]:
    """Paths to which slots after ``n`` give another content: no earlier slot may put its own in place again."""
    return {slot.replaces.path for slot in slots if slot.n > n and slot.replaces}


def publish(
    store: Store,
    layout: LogLayout,
    clock: Clock,
    slot: Slot,
    dead: Collection[str] = (),
    usable: Usable = ours_alone,
    check_owner: Callable[[], None] = unchecked,
    listed: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Puts the slot's files in place, except the ``dead`` ones. A file that exists stays, unless a power cut left it torn, or it
    is another program's and not ``usable``. ``check_owner`` raises when the table is no longer ours. ``listed``: sizes of files
    that are there and whole; a derived file of that size is not looked at.

    When this returns every file is there. Raises MissingFileError when staged bytes are gone, CorruptFileError for another
    program's file under a name that is ours alone, StoreUnavailableError.
    """
    if slot.replaces and slot.replaces.path not in dead:
        _replace(store, slot.replaces, check_owner)
    staged = [file for file in slot.files if file.stage and file.path not in dead]
    if staged:
        _link(store, layout, staged, check_owner)
    for path, content in derived_files(slot):
        if path in dead or listed.get(path) == len(content):
            continue
        # Other programs may rewrite the properties, so a torn file of that name would pass for theirs: those are synced at once.
        outcome = create_for_certain(store, clock, path, content, durable=slot.kind is SlotKind.CONFIG, check_owner=check_owner)
        if outcome is Outcome.EXISTS and slot.kind is not SlotKind.CONFIG:
            try:
                _put_right(store, path, content, slot.n, usable)
            except FileNotFoundError as error:
                check_owner()
                raise MissingFileError(
                    f"{path} was there, and is gone",
                    fix="Another process has deleted it: a successor that has archived it, or somebody from outside.",
                ) from error


def _replace(store: Store, file: ReplacedFile, check_owner: Callable[[], None]) -> None:
    """Repeatable: the second time, the file has other bytes than it had."""
    try:
        expected = hashlib.sha256(store.get(file.path).to_pybytes()).hexdigest() == file.was
    except FileNotFoundError:
        expected = True
    if expected:
        check_owner()
        store.replace(file.path, [base64.b64decode(file.content)])


def _put_right(store: Store, path: str, content: bytes, n: int, usable: Usable) -> None:
    """Derived files are not synced: after a power cut a name may be there with a part of its content, or none."""
    found = store.get(path).to_pybytes()
    shared = usable(path, found)
    if found == content or shared:
        return
    if shared is None and not (store.stages and content.startswith(found.rstrip(b"\0"))):
        raise CorruptFileError(
            f"{path} is there, but holds something other than slot {n} decided",
            fix="Another program wrote that name. Move it away; the next write puts the right one in place.",
        )
    store.replace(path, [content])


def _link(store: Store, layout: LogLayout, files: Sequence[DataFile], check_owner: Callable[[], None]) -> None:
    def names() -> Iterator[tuple[str, str]]:
        for file in files:
            check_owner()
            yield file.stage, file.path

    unstaged = [file for file, outcome in zip(files, store.link_all(names()), strict=True) if outcome is None]
    # Listed once: a takeover looks at the files of every slot since the newest fold, and rows wait for it meanwhile.
    folders = store.list_folder(layout.stages).folders if unstaged else ()
    for file in unstaged:
        _link_revoked(store, layout, file, folders)


def _link_revoked(store: Store, layout: LogLayout, file: DataFile, folders: Sequence[str]) -> None:
    """Links a file that is not in its stage any more, unless that has been done. ``folders``: of stages."""
    linked = store.link_all((name, file.path) for name in _revoked_names(layout, file.stage, folders))
    if all(outcome is None for outcome in linked) and store.size(file.path) != file.size:
        raise MissingFileError(
            f"{file.path} is committed, but neither it nor its staged bytes {file.stage} are there",
            fix="Restore the file from a copy of the table.",
        )


def _revoked_names(layout: LogLayout, stage: str, folders: Sequence[str]) -> Iterator[str]:
    """Rule W2: a successor renames the stage folder of an older epoch before it rolls forward."""
    epoch, _, rest = stage.removeprefix(f"{layout.stages}/").partition("/")
    for folder in folders:
        if folder.startswith(epoch + REVOKED):
            yield f"{layout.stages}/{folder}/{rest}"


def make_durable(store: Store, slots: Sequence[Slot]) -> None:
    """Syncs what ``publish`` left to the page cache, then removes the staged names (before a fold, rule G1)."""
    dead = given_up(slots)
    staged = [file for slot in slots for file in slot.files if file.stage]
    derived = [file for slot in slots for file in derived_files(slot) if file[0] not in dead]
    folders = {path.rpartition("/")[0] for path in [*(path for path, _ in derived), *(file.path for file in staged)]}
    # An empty file has no content to sync; syncing its folder makes the name durable.
    store.sync([path for path, content in derived if content], folders | {folder.rpartition("/")[0] for folder in folders})
    store.delete(file.stage for file in staged)
