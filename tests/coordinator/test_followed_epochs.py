"""What the committer does when writers have followed a later epoch of its table: its folder was put back from an older copy."""

from pathlib import Path

import pytest

from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import AskLog
from headgate_coordinator.core.operations import CompactionEvent
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.passed import EpochPassedError
from headgate_tables.errors import DeposedError
from headgate_tables.hudi import OwnerProcess, Table, open_table
from support.tables import create


def owned(folder: Path, *, after_epoch: int = 0) -> Table:
    table = open_table(f"file://{folder}/table", owner=OwnerProcess("cluster", "host", 1, "one:1"))
    table.own(after_epoch=after_epoch)
    return table


def committer(table: Table) -> Committer:
    told: list[Event | CompactionEvent] = []
    return Committer(table, lambda: 0, told.append)


def test_r6_an_owner_that_the_log_confirms_ends_for_writers_that_have_followed_a_later_epoch(tmp_path: Path) -> None:
    create(tmp_path)
    here = committer(owned(tmp_path))
    here.execute(AskLog(1))
    with pytest.raises(EpochPassedError) as ended:
        here.execute(AskLog(9))
    assert ended.value.followed == 9
    assert owned(tmp_path, after_epoch=9).epoch == 10
    assert owned(tmp_path, after_epoch=9).epoch == 11


def test_r6_an_owner_that_the_log_does_not_confirm_is_deposed_whatever_writers_have_followed(tmp_path: Path) -> None:
    create(tmp_path)
    here = committer(owned(tmp_path))
    owned(tmp_path)
    with pytest.raises(DeposedError):
        here.execute(AskLog(9))
