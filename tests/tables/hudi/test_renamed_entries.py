"""A table gets another name in the catalog: one object decides, whoever dies or comes first (rule D11)."""

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest

from headgate_tables.catalog import Catalog, FormerTable
from headgate_tables.commitlog.records import DropRecord
from headgate_tables.errors import NotATableError, OptionError, TableDroppedError, TableExistsError, TableRenamedError
from headgate_tables.storage.mounted import MountedFolder
from headgate_tables.system import System
from support.faults import FailingStore, Fault, KilledError

TIME = "20261125102030001"


def former(to: str, by: str = "ann") -> FormerTable:
    return FormerTable("the-id", 1007, DropRecord(TIME, by), to)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def catalog(root: Path) -> Catalog:
    return Catalog(str(root), None, System.real())


def mortal(root: Path, fault: Fault | None = None) -> Catalog:
    """A catalog of a process that dies at some call."""
    store = FailingStore(root, System.real().ids)
    store.fault = fault
    catalog = Catalog(str(root), None, System.real())
    catalog._store, catalog._files = store, MountedFolder(store, ".headgate")
    return catalog


def test_d11_a_table_has_its_new_name_alone_and_the_old_one_says_so(catalog: Catalog) -> None:
    catalog.add("orders", "orders", "ben")
    catalog.rename("orders", former("sales.orders"))
    assert catalog.names() == ["sales.orders"]
    assert catalog.entry("sales.orders") == ("sales.orders", f"{catalog.url}/orders", "ben")
    with pytest.raises(TableRenamedError, match=r"renamed at 2026-11-25 10:20:30 UTC by ann, and is sales\.orders now"):
        catalog.entry("orders")
    assert catalog.former("orders") == former("sales.orders")
    with pytest.raises(TableRenamedError):
        catalog.rename("orders", former("other"))
    assert catalog.names() == ["sales.orders"]


def test_d11_the_old_name_is_free_for_a_table_in_another_folder_and_a_name_may_come_back(catalog: Catalog) -> None:
    catalog.add("a", "a")
    catalog.rename("a", former("b"))
    assert catalog.place_of_new("a") == "a~2"
    catalog.add("a", "a~2")
    catalog.settle("b")
    assert catalog.places() == {"a": "a~2", "b": "b"}
    catalog.rename("a", former("c"))
    catalog.rename("b", former("a"))
    assert catalog.places() == {"a": "a~3", "c": "c"}
    assert (catalog.entry("a").url, catalog.entry("c").url) == (f"{catalog.url}/a", f"{catalog.url}/a~2")


def test_d11_a_name_of_another_table_is_not_taken(catalog: Catalog) -> None:
    for name in ("a", "b", "gone"):
        catalog.add(name, name)
    catalog.forget("gone", FormerTable("x", 1, DropRecord(TIME, "")))
    with pytest.raises(TableExistsError, match="there is a table b"):
        catalog.rename("a", former("b"))
    for wrong in ("", "a/b", ".a", "a~2"):
        with pytest.raises(OptionError):
            catalog.rename("a", former(wrong))
    with pytest.raises(NotATableError, match="no table nobody"):
        catalog.rename("nobody", former("c"))
    assert catalog.places() == {"a": "a", "b": "b"}
    catalog.rename("a", former("gone"))
    assert catalog.places() == {"gone": "gone~2", "b": "b"}


@pytest.mark.parametrize("after", [False, True])
def test_d11_a_renaming_that_dies_at_any_call_is_not_begun_or_ends_when_the_new_name_is_opened(
    tmp_path: Path, after: bool
) -> None:
    begun = done = 0
    for at in itertools.count(1):
        root = tmp_path / str(at)
        catalog = Catalog(str(root), None, System.real())
        catalog.add("a", "a", "ben")
        fault = Fault(at, KilledError, after=after)
        with contextlib.suppress(KilledError):
            mortal(root, fault).rename("a", former("b"))
        if "b" in catalog.names():
            done += 1
            for _ in range(2):
                catalog.settle("b")
            assert catalog.names() == ["b"]
            assert catalog.entry("b") == ("b", f"{catalog.url}/a", "ben")
            assert catalog.former("a") == former("b")
        else:
            begun += 1
            assert catalog.names() == ["a"]
            catalog.rename("a", former("b"))
            assert catalog.names() == ["b"]
        if not fault.happened:
            break
    assert begun >= 2
    assert done >= 2


def begin(root: Path, to: str) -> None:
    """A process makes the new entry, and dies before it decides."""
    for at in itertools.count(1):
        fault = Fault(at, KilledError)
        with contextlib.suppress(KilledError):
            mortal(root, fault).rename("a", former(to))
        if to in Catalog(str(root), None, System.real()).names():
            assert fault.happened
            return


def test_d11_a_name_that_a_renaming_left_behind_is_free_for_its_table_alone(catalog: Catalog, root: Path) -> None:
    for name in ("a", "other"):
        catalog.add(name, name)
    begin(root, "b")
    catalog.check_new_name("a", "b")
    catalog.check_new_name("a", "c")
    for name, to in (("other", "b"), ("a", "other"), ("b", "a")):
        with pytest.raises(TableExistsError, match=f"there is a table {to}"):
            catalog.check_new_name(name, to)
    with pytest.raises(OptionError):
        catalog.check_new_name("a", "x/y")
    catalog.rename("a", former("b"))
    assert catalog.names() == ["b", "other"]
    with pytest.raises(TableRenamedError):
        catalog.check_new_name("a", "c")


@pytest.mark.parametrize("first", ["b", "c"])
def test_d11_of_two_renamings_that_began_one_counts(catalog: Catalog, root: Path, first: str) -> None:
    other = "c" if first == "b" else "b"
    catalog.add("a", "a")
    begin(root, "b")
    begin(root, "c")
    assert catalog.names() == ["a", "b", "c"]
    catalog.settle(first)
    with pytest.raises(NotATableError):
        catalog.settle(other)
    assert catalog.names() == [first]


def test_d11_a_renaming_that_comes_second_says_what_the_table_is_called(catalog: Catalog, root: Path) -> None:
    catalog.add("a", "a")
    begin(root, "b")
    late = mortal(root)
    enter = late._enter

    def after_another(*entry: Any) -> Any:
        entered = enter(*entry)
        catalog.settle("b")
        return entered

    late._enter = after_another  # type: ignore[method-assign]
    with pytest.raises(TableRenamedError, match="and is b now"):
        late.rename("a", former("c"))
    assert catalog.names() == ["b"]


def test_d11_a_table_that_was_dropped_first_gets_no_other_name(catalog: Catalog, root: Path) -> None:
    catalog.add("a", "a")
    begin(root, "b")
    drop = FormerTable("the-id", 7, DropRecord(TIME, "ann"))
    with contextlib.suppress(KilledError):
        mortal(root, Fault(3)).forget("a", drop)  # after the note, before the entry goes
    with pytest.raises(NotATableError, match="no table b"):
        catalog.settle("b")
    assert catalog.names() == []
    with pytest.raises(TableDroppedError):
        catalog.entry("a")
