"""The pure core with many writers, and with many tables whose processes die together; by hand with more of both.

``HEADGATE_WIDE_WALKS``: walks of 64 writers (default 3). ``HEADGATE_WIDE_TABLES``: tables (default 100), of
``HEADGATE_WIDE_WRITERS`` writers each (default 4). 1,000 tables of 64 writers take 15 minutes of CPU.
"""

import os
from functools import partial

import pytest

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim import mutants
from support.coordinator_sim.verdicts import is_wrong, naming
from support.coordinator_sim.wide import WRITERS, TableWalk, WideWalk, blows

WALKS = int(os.environ.get("HEADGATE_WIDE_WALKS", "3"))
TABLES = int(os.environ.get("HEADGATE_WIDE_TABLES", "100"))
TABLES_WRITERS = int(os.environ.get("HEADGATE_WIDE_WRITERS", "4"))
STEPS = 3000


@pytest.mark.slow
def test_64_writers_commit_everything_exactly_once_and_in_order() -> None:
    for seed in range(WALKS):
        walk = WideWalk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        assert len({file.process for slot in walk.log.slots for file in slot.files}) > WRITERS / 4, "rows went to few writers"


@pytest.mark.slow
def test_tables_whose_writers_and_coordinators_die_together_commit_everything() -> None:
    together = list(blows(1, 5, STEPS // 5, TABLES_WRITERS))
    assert any(blow.coordinator for blow in together)
    for table in range(TABLES):
        with naming(f"table {table}"):
            TableWalk(1, table, TABLES_WRITERS).endure(together)


@pytest.mark.parametrize(
    ("mutant", "first"), [(mutants.CommitsWithoutAllFiles, 3), (mutants.GivesUpWhatGoesOn, 0), (mutants.TellsBeforeTheSlot, 0)]
)
def test_a_coordinator_that_breaks_one_rule_is_found_with_64_writers(mutant: type[TableCoordinator], first: int) -> None:
    assert any(is_wrong(partial(WideWalk(seed, mutant).run, STEPS)) for seed in (first, *range(20)))


@pytest.mark.parametrize(("mutant", "first"), [(mutants.CommitsWithoutAllFiles, 21), (mutants.TellsBeforeTheSlot, 0)])
def test_a_coordinator_that_breaks_one_rule_is_found_among_many_tables(mutant: type[TableCoordinator], first: int) -> None:
    together = list(blows(1, 5, STEPS // 5, 4))
    assert any(is_wrong(partial(TableWalk(1, table, 4, mutant).endure, together)) for table in (first, *range(200)))
