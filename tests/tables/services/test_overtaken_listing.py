"""An owner lists its table on a thread of its own, and a service is quicker: nothing is kept for the listing then."""

import weakref
from pathlib import Path

from headgate_tables.system import SystemIds
from support.handles import open_on
from support.held_store import HeldStore
from support.systems import SetClock, system
from support.tables import create, rows


class Names(dict[str, dict[str, int]]):
    """Of files by partition, to which there are weak references."""


def test_nothing_is_kept_for_a_listing_that_a_service_was_quicker_than(tmp_path: Path) -> None:
    """As a savepoint of an operator is. What commits bring would be kept for it as long as the owner lives."""
    clock = SetClock()
    create(tmp_path, system=system(clock)).upsert(rows(("a", 1, "x")))
    store = HeldStore(str(tmp_path / "table"), SystemIds())
    table = open_on(store, system(clock))
    table.own()
    assert table.maintain().more, "it lists"
    snapshots, names = table._opened.snapshots, Names(p={})
    kept = weakref.ref(names)
    snapshots.add_completed("1", "2", names)
    del names
    table.savepoint()
    assert kept() is not None
    table.maintain()
    assert kept() is None
    assert table._maintainer._listing is None
    store.listing_may_go_on.set()
