"""A table of ours is brought from Hudi's version 8 to 9 and back: what changes, what stays, and what a crash leaves."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.claim import OWNERSHIP_TRUSTED_S
from headgate_tables.errors import DeposedError, ForeignWriterError, OptionError
from headgate_tables.face.results import VersionChange
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers
from headgate_tables.system import SystemIds
from support.faults import READS, FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.refusals import refused
from support.systems import SetClock, system
from support.tables import SHORT, by_hudi_rs, create, notes, rows

DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
PLACES = pa.schema([("id", pa.string()), ("a", pa.string()), ("b", pa.string())])


def properties_of(path: Path) -> dict[str, str]:
    return parse((path / PROPERTIES_PATH).read_bytes(), "")


def edit(path: Path, **changes: str) -> None:
    """As another program: ``_`` stands for a dot."""
    new = properties_of(path) | {key.replace("_", "."): value for key, value in changes.items()}
    (path / PROPERTIES_PATH).write_bytes(render(new, "Edited"))


def version_of(path: Path) -> str:
    return properties_of(path)["hoodie.table.version"]


def all_read(path: Path, expected: Mapping[str, str]) -> None:
    assert notes(hudi.open_table(str(path))) == expected
    assert {row["id"]: row["note"] for row in by_hudi_rs(str(path))} == expected


def test_an_upgrade_changes_the_properties_as_hudi_does_and_a_downgrade_takes_it_back(tmp_path: Path) -> None:
    table, path = create(tmp_path), tmp_path / "table"
    table.upsert(rows(("a", 2, "x"), ("b", 2, "y")))
    table.upsert(rows(("a", 1, "late"), ("b", 3, "z")))
    edit(path, some_other_program="s key")
    before = properties_of(path)
    assert table.change_version(9) == VersionChange(8, 9)
    gone = {"hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id", "hoodie.table.precombine.field"}
    assert properties_of(path) == {key: value for key, value in before.items() if key not in gone} | {
        "hoodie.table.version": "9",
        "hoodie.table.legacy.payload.class": DEFAULT_PAYLOAD,
        "hoodie.table.ordering.fields": "ts",
    }
    all_read(path, {"a": "x", "b": "z"})
    assert table.format_version == 9
    assert table.setup_of("spark").options["hoodie.write.table.version"] == "9"
    table.upsert(rows(("a", 0, "late again"), ("c", 1, "w")))
    assert table.compact().completion
    assert table.change_version(8) == VersionChange(9, 8)
    assert properties_of(path) == before
    assert table.format_version == 8
    all_read(path, {"a": "x", "b": "z", "c": "w"})
    assert hudi.open_table(str(path)).verify().ok


@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
def test_a_table_created_in_version_9_has_in_8_what_one_created_there_has(tmp_path: Path, ordering: str | None) -> None:
    table = create(tmp_path / "nine", table_version=9, ordering=ordering)
    create(tmp_path / "eight", ordering=ordering)
    created = properties_of(tmp_path / "eight" / "table")
    table.change_version(8)
    assert properties_of(tmp_path / "nine" / "table") == created | {"hoodie.table.initial.version": "9"}


def test_nothing_is_decided_when_the_table_has_the_version_already(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    slots = list((tmp_path / "table" / ".hoodie/.headgate/slot").iterdir())
    assert table.change_version(8) == VersionChange(8, 8)
    assert list((tmp_path / "table" / ".hoodie/.headgate/slot").iterdir()) == slots


def test_transactions_that_are_open_go_on_over_a_change(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    first, second = table.transaction(), table.transaction()
    first.upsert(rows(("a", 1, "x")))
    table.change_version(9)
    second.upsert(rows(("b", 1, "y")))
    first.commit()
    table.change_version(8)
    second.commit()
    all_read(tmp_path / "table", {"a": "x", "b": "y"})


def test_settings_stay_and_a_fold_keeps_the_version(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.configure(SHORT)
    settings = table.settings
    table.change_version(9)
    for n in range(110):
        table.win_offsets({}, [str(n)])
    table.tidy()
    (tmp_path / "table" / PROPERTIES_PATH).rename(tmp_path / "moved away")
    again = hudi.open_table(table.url)
    assert (again.settings, again.format_version) == (settings, 9)


@pytest.mark.parametrize("number", [7, 10])
def test_a_version_that_is_not_written_is_refused(tmp_path: Path, number: int) -> None:
    with refused(OptionError, f"table version {number}", "Choose one of 8, 9"):
        create(tmp_path).change_version(number)


@pytest.mark.parametrize(("is_in", "wanted", "form"), [(8, 9, "stored as value"), (9, 8, "stored as id:value")])
def test_a_table_whose_keys_the_other_version_writes_differently_is_refused(
    tmp_path: Path, is_in: int, wanted: int, form: str
) -> None:
    """Otherwise the next upsert of Spark would add each row once more (fact HF13)."""
    path = str(tmp_path / "t")
    table = hudi.create_table(path, PLACES, record_key="id", partition_by=["a", "b"], buckets=2, table_version=is_in)
    with refused(OptionError, form, f"load its rows into a new table of version {wanted}"):
        table.change_version(wanted)
    assert hudi.open_table(path).format_version == is_in


@pytest.mark.slow
@pytest.mark.parametrize("store_class", [FailingStore, InPlaceStore], ids=["staged", "in place"])
def test_a_change_that_is_killed_anywhere_leaves_a_table_that_all_read_and_the_next_owner_ends_it(
    tmp_path: Path, store_class: type[FailingStore]
) -> None:
    decided = 0
    for step in range(2, 1000):
        at, after_it = divmod(step, 2)
        path = tmp_path / str(step) / "table"
        create(path.parent, buckets=1).upsert(rows(("a", 1, "x")))
        slots = path / ".hoodie/.headgate/slot"
        store = store_class(path, SystemIds())
        table = open_on(store, system(SetClock()))
        table.own()
        won = len(list(slots.iterdir()))
        fault = store.fault = Fault(at, after=bool(after_it))
        with contextlib.suppress(KilledError):
            table.change_version(9)
        if fault.happened.startswith(READS):
            continue
        assert version_of(path) in ("8", "9")
        all_read(path, {"a": "x"})
        after = len(list(slots.iterdir())) > won
        decided += after and version_of(path) == "8"
        again = open_on(store_class(path, SystemIds()), system(SetClock()))
        again.upsert(rows(("a", 0, "late"), ("b", 1, "y")))
        assert version_of(path) == ("9" if after else "8")
        all_read(path, {"a": "x", "b": "y"})
        if not fault.happened:
            break
    assert not fault.happened
    assert decided, "no kill fell between the slot and the properties"


class Interrupted(LocalStore):
    """``before_replace`` runs before a file gets another content."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), SystemIds())
        self.before_replace: Any = lambda: None

    def replace(self, path: str, content: Buffers) -> None:
        self.before_replace()
        super().replace(path, content)


def killed() -> None:
    raise KilledError


def between_slot_and_properties(path: Path) -> None:
    """An owner dies there; the table stays as it is."""
    store = Interrupted(path)
    table = open_on(store)
    table.own()
    store.before_replace = killed
    with pytest.raises(KilledError):
        table.change_version(9)
    assert version_of(path) == "8"


def test_what_another_program_has_made_of_the_properties_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "table"
    create(tmp_path).upsert(rows(("a", 1, "x")))
    between_slot_and_properties(path)
    edit(path, another_program="was here")
    theirs = properties_of(path)
    table = hudi.open_table(str(path))
    table.upsert(rows(("b", 1, "y")))
    assert properties_of(path) == theirs
    assert table.change_version(9) == VersionChange(8, 9)
    assert properties_of(path)["another.program"] == "was here"
    all_read(path, {"a": "x", "b": "y"})


def test_another_program_that_changes_the_properties_at_the_same_moment_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table"
    create(tmp_path).upsert(rows(("a", 1, "x")))

    class Late(LocalStore):
        def create(self, name: str, content: Buffers, *, durable: bool) -> Any:
            outcome = super().create(name, content, durable=durable)
            if changing and "/slot/" in name:
                edit(path, another_program="was here")
            return outcome

    changing = False
    table = open_on(Late(str(path), SystemIds()))
    table.own()
    changing = True
    with refused(ForeignWriterError, "at the same moment", "then ask again"):
        table.change_version(9)
    changing = False
    assert version_of(path) == "8"
    assert table.change_version(9) == VersionChange(8, 9)
    assert properties_of(path)["another.program"] == "was here"


def test_properties_that_were_deleted_come_back_as_the_newest_slot_has_them(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = create(tmp_path)
    table.change_version(9)
    table.change_version(8)
    (path / PROPERTIES_PATH).unlink()
    hudi.open_table(str(path)).upsert(rows(("a", 1, "x")))
    assert version_of(path) == "8"
    edit(path, another_program="was here")
    table = hudi.open_table(str(path))
    table.change_version(9)
    changed = (path / PROPERTIES_PATH).read_bytes()
    (path / PROPERTIES_PATH).unlink()
    assert hudi.open_table(str(path)).format_version == 9
    hudi.open_table(str(path)).upsert(rows(("b", 1, "y")))
    assert (path / PROPERTIES_PATH).read_bytes() == changed
    all_read(path, {"a": "x", "b": "y"})


def test_an_owner_that_slept_after_its_slot_changes_nothing_any_more(tmp_path: Path) -> None:
    """Hazard H8: its successor has ended the change, and taken it back."""
    path, clock = tmp_path / "table", SetClock()
    create(tmp_path, system=system(clock)).upsert(rows(("a", 1, "x")))
    store = Interrupted(path)

    class Sleeper(Interrupted):
        def create(self, name: str, content: Buffers, *, durable: bool) -> Any:
            outcome = super().create(name, content, durable=durable)
            if sleeps and "/slot/" in name:
                clock.now += round(OWNERSHIP_TRUSTED_S * 1000) + 60_000
                other = open_on(store, system(clock))
                other.change_version(9)
                other.change_version(8)
                # Bytes that were there before the sleeper's slot: only its ownership keeps the sleeper from replacing them.
                (path / PROPERTIES_PATH).write_bytes(original)
            return outcome

    sleeps = False
    original = (path / PROPERTIES_PATH).read_bytes()
    sleeper = open_on(Sleeper(path), system(clock))
    sleeper.own()
    sleeps = True
    with pytest.raises(DeposedError):
        sleeper.change_version(9)
    assert (path / PROPERTIES_PATH).read_bytes() == original
