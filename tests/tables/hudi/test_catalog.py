"""Entries of tables under a store's root."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.catalog import Catalog, FormerTable
from headgate_tables.commitlog.records import DropRecord
from headgate_tables.errors import (
    CorruptFileError,
    NotATableError,
    OptionError,
    StoreUnavailableError,
    TableDroppedError,
    TableExistsError,
    UnsupportedTableError,
)
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import System
from support.tables import SCHEMA, rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a root % of 100"


@pytest.fixture
def catalog(root: Path) -> Catalog:
    return Catalog(str(root), None, System.real())


def test_a_root_without_entries_has_no_tables(catalog: Catalog) -> None:
    assert catalog.names() == []


def test_a_table_is_created_then_entered_and_opened_by_name(catalog: Catalog, root: Path) -> None:
    made = hudi.create_table(f"{catalog.url}/orders", SCHEMA, record_key="id", ordering="ts")
    catalog.add("orders", "orders")
    assert catalog.names() == ["orders"]
    assert json.loads((root / ".headgate/tables/orders").read_bytes()) == {"format": 1, "path": "orders"}
    assert catalog.entry("orders").url == made.url
    hudi.open_table(catalog.entry("orders").url).upsert(rows(("a", 1, "x")))
    assert hudi.open_table(str(root / "orders")).scan().to_table().num_rows == 1


def test_names_are_sorted_and_other_files_are_not_tables(catalog: Catalog, root: Path) -> None:
    for name in ("b", "a.b-c_D", "9", "x" * 128):
        catalog.add(name, name)
    (root / ".headgate/tables/.hidden").write_text("{}")
    (root / ".headgate/tables/folder").mkdir()
    assert catalog.names() == ["9", "a.b-c_D", "b", "x" * 128]


def test_an_entry_is_never_overwritten(catalog: Catalog) -> None:
    catalog.add("orders", "here")
    catalog.add("orders", "here")
    with pytest.raises(TableExistsError, match="orders is there already, in here"):
        catalog.add("orders", "there")
    assert catalog.entry("orders").url.endswith("/here")


def test_an_entry_keeps_its_first_creator_and_one_from_before_creators_were_kept_has_none(catalog: Catalog, root: Path) -> None:
    catalog.add("orders", "orders", "loader")
    catalog.add("orders", "orders", "eve")
    assert catalog.entry("orders").creator == "loader"
    (root / ".headgate/tables/old").write_text('{"format": 1, "path": "old"}')
    assert catalog.entry("old").creator == ""
    assert catalog.entry("old").url.endswith("/old")


@pytest.mark.parametrize("name", ["", ".a", "-a", "_a", "a/b", "a b", "ä", "a\n", "..", "x" * 129, "a\0"])
def test_an_invalid_table_name_is_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(OptionError, match="not a table name"):
        catalog.add(name, "folder")
    with pytest.raises(OptionError, match="not a table name"):
        catalog.entry(name)
    assert catalog.names() == []


@pytest.mark.parametrize("path", ["", "..", "a/../b", "/a", "a/", "a//b", "."])
def test_a_path_stays_under_the_root(catalog: Catalog, path: str) -> None:
    with pytest.raises(OptionError, match="not a folder under the root"):
        catalog.add("orders", path)
    assert catalog.names() == []


def test_a_path_of_several_folders_and_odd_characters_is_found_again(catalog: Catalog, root: Path) -> None:
    made = hudi.create_table(str(root / "a b" / "100 %20"), SCHEMA, record_key="id")
    catalog.add("odd", "a b/100 %20")
    assert catalog.entry("odd").url == made.url
    assert hudi.open_table(catalog.entry("odd").url).definition == made.definition


def test_a_name_without_an_entry_is_not_a_table(catalog: Catalog) -> None:
    with pytest.raises(NotATableError, match="no table orders"):
        catalog.entry("orders")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"format":1}',
        b'{"format":"x","path":"a"}',
        b'{"format":1,"path":7}',
        b'{"format":1,"path":"../x"}',
        b'{"format":1,"path":"a","creator":7}',
    ],
)
def test_a_damaged_entry_is_named(catalog: Catalog, root: Path, content: bytes) -> None:
    catalog.add("orders", "orders")
    (root / ".headgate/tables/orders").write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"\.headgate/tables/orders names no folder"):
        catalog.entry("orders")


def test_an_entry_of_a_newer_format_is_refused(catalog: Catalog, root: Path) -> None:
    catalog.add("orders", "orders")
    (root / ".headgate/tables/orders").write_text('{"format": 2, "path": "orders"}')
    with pytest.raises(UnsupportedTableError, match="format 2"):
        catalog.entry("orders")


def test_an_entry_with_fields_of_a_later_version_is_read(catalog: Catalog, root: Path) -> None:
    catalog.add("orders", "orders")
    (root / ".headgate/tables/orders").write_text('{"format": 1, "path": "orders", "colour": "red"}')
    assert catalog.entry("orders").url.endswith("/orders")


def test_d8_a_place_is_never_used_twice_and_a_late_drop_takes_no_other_entry_out(catalog: Catalog, root: Path) -> None:
    first, second = (FormerTable(f"id-{n}", 7, DropRecord(f"2026112510203000{n}", "ann")) for n in (1, 2))
    assert (catalog.place_of_new("orders"), catalog.former("orders")) == ("orders", None)
    catalog.add("orders", "orders")
    catalog.add("orders-new", "orders-new")
    catalog.forget("orders", first)
    assert catalog.names() == ["orders-new"]
    assert catalog.former("orders") == first
    with pytest.raises(TableDroppedError, match="was dropped at 2026-11-25 10:20:30 UTC by ann"):
        catalog.entry("orders")
    with pytest.raises(OptionError, match="was dropped"):
        catalog.add("orders", "orders")
    assert catalog.place_of_new("orders") == "orders~2"
    catalog.add("orders", "orders~2", "ben")
    catalog.forget("orders", first)  # a coordinator that slept in the middle of the drop
    assert catalog.names() == ["orders", "orders-new"]
    assert catalog.entry("orders") == ("orders~2", f"{catalog.url}/orders~2", "ben")
    catalog.forget("orders~2", second)
    assert catalog.former("orders") == second
    assert catalog.place_of_new("orders") == "orders~3"
    assert catalog.place_of_new("orders-new") == "orders-new"
    assert catalog.former("nobody") is None


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"format": 2}', UnsupportedTableError),
        ("[]", CorruptFileError),
        ('{"format": 1, "table": "x", "time": "yesterday", "by": ""}', CorruptFileError),
        ('{"format": 1, "table": "x", "time": "20261125102030001", "by": 7}', CorruptFileError),
    ],
)
def test_a_record_of_a_drop_that_says_nothing_is_refused(
    catalog: Catalog, root: Path, content: str, error: type[Exception]
) -> None:
    (root / ".headgate/dropped").mkdir(parents=True)
    (root / ".headgate/dropped/orders").write_text(content)
    with pytest.raises(error):
        catalog.former("orders")


LOOKS: dict[str, Callable[[Catalog], object]] = {
    "list": lambda catalog: catalog.names(),
    "find": lambda catalog: catalog.entry("orders"),
    "find another": lambda catalog: catalog.entry("others"),
    "place": lambda catalog: catalog.place_of_new("others"),
    "former": lambda catalog: catalog.former("orders"),
    "enter": lambda catalog: catalog.add("others", "others"),
    "forget": lambda catalog: catalog.forget("orders", FORMER),
    "settle": lambda catalog: catalog.settle("orders"),
    "test": lambda catalog: catalog.test_store(),
}
FORMER = FormerTable("id", 1, DropRecord("20261130120000000", "somebody"))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("seen_by", ["entering", "listing", "finding", "a root without tables"])
def test_while_a_roots_disk_is_not_mounted_no_table_is_missing_and_none_is_made(
    catalog: Catalog, root: Path, look: str, seen_by: str
) -> None:
    if seen_by == "a root without tables":
        catalog.test_store()
        catalog = Catalog(str(root), None, System.real())
        assert catalog.names() == []
    else:
        catalog.add("orders", "orders")
        if seen_by != "entering":
            catalog = Catalog(str(root), None, System.real())
            _ = catalog.names() if seen_by == "listing" else catalog.entry("orders")
    disk = root.rename(root.with_name("disk"))
    root.mkdir()  # the bare mount point
    with pytest.raises(StoreUnavailableError, match=r"\.headgate is gone, .*\. Mount"):
        LOOKS[look](catalog)
    root.rmdir()  # nothing was made in it
    with pytest.raises(StoreUnavailableError, match=r"\.headgate is gone"):
        LOOKS[look](catalog)
    disk.rename(root)
    assert catalog.names() == ([] if seen_by == "a root without tables" else ["orders"])


def test_a_disk_that_comes_back_during_a_look_shows_its_tables(
    catalog: Catalog, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.add("orders", "orders")
    disk = root.with_name("disk")

    def mount(store: LocalStore, path: str) -> str | None:
        if disk.exists():
            disk.rename(root)
        return version(store, path)

    version = LocalStore.version
    monkeypatch.setattr(LocalStore, "version", mount)
    root.rename(disk)
    assert catalog.names() == ["orders"]
    root.rename(disk)
    assert catalog.entry("orders").url.endswith("/orders")
