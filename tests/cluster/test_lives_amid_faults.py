"""A table is renamed while its owner dies, and dropped while it is being restored: one thing or the other has happened, no row is
lost or doubled, and the table goes on."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import headgate
from support.cluster import Cluster
from support.numbered import SCHEMA, assert_each_once, owner_of, producing
from support.processes import READY_S
from support.readers import read_by_hudi_rs

pytestmark = pytest.mark.slow

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}
NAMES = ("first", "second")
WEEK = timedelta(days=7)
BEHIND_S = (0.0, 0.02, 0.1)
"""Between the beginning of a call and the fault, which so meets the call at different points."""


def in_background(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("behind_s", BEHIND_S)
def test_a_rename_whose_owner_is_killed_leaves_one_name_and_every_row_once(tmp_path: Path, behind_s: float) -> None:
    """Rule D11. The call goes on at the other coordinator, or is made again."""
    with (
        Cluster(tmp_path / "cluster", options=SOON, coordinators=2) as cluster,
        headgate.connect([cluster.address_of(f"coordinator-{n}") for n in (1, 2)], timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table(NAMES[0], SCHEMA, key="id")
        with producing(hg, NAMES[0], headgate.TableRenamedError, then=NAMES[1:]) as producer:
            owner = owner_of(hg, NAMES[0])
            renaming = in_background(lambda: table.rename(NAMES[1]))
            time.sleep(behind_s)
            cluster.kill(owner)
            renaming.join(READY_S)
            assert not renaming.is_alive()
            cluster.start(owner)
            assert [each.name for each in hg.tables()] == [NAMES[1]]
        assert_each_once(tmp_path / "cluster/store/first", producer)


@pytest.mark.parametrize("behind_s", BEHIND_S)
def test_a_drop_during_a_restore_leaves_a_table_that_comes_back_restored_or_as_it_was(tmp_path: Path, behind_s: float) -> None:
    """Rules D9 and CH8. Of the two calls the later one may hear of the other."""
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        with table.channel("c") as channel:
            channel.upsert([{"id": number, "n": 1} for number in range(50)])
        saved = table.savepoint()
        for round_ in range(5):
            with table.channel("c") as channel:
                channel.upsert([{"id": number, "n": 2} for number in range(50 * round_, 50 * round_ + 100)])
        heard: list[headgate.HeadgateError] = []

        def restore() -> None:
            try:
                table.restore(saved)
            except headgate.HeadgateError as error:
                heard.append(error)

        restoring = in_background(restore)
        time.sleep(behind_s)
        table.drop(grace=WEEK)
        restoring.join(READY_S)
        assert not restoring.is_alive()
        back = hg.undrop_table("t")
        found = sorted(map(tuple, (row.values() for row in read_rows(tmp_path / "cluster/store/t"))))
        before, after = [(number, 1) for number in range(50)], [(number, 2) for number in range(300)]
        assert found in (before, after)
        if not heard:
            assert found == before, "the restore was carried out, it said"
        with back.channel("c") as channel:
            channel.upsert([{"id": 1000, "n": 3}])
        assert len(read_rows(tmp_path / "cluster/store/t")) == len(found) + 1


def read_rows(folder: Path) -> list[dict[str, int]]:
    return [{"id": row["id"], "n": row["n"]} for row in read_by_hudi_rs(folder).to_pylist()]
