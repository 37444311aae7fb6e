from dataclasses import replace

import pytest

from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.planning.next_steps import BUNCH, MaintenanceState, Step, next_steps

SETTINGS = TableSettings(archive_min=40, archive_max=60)


def test_nothing_is_due_of_a_table_that_is_well() -> None:
    assert next_steps(MaintenanceState(), SETTINGS) == []


def test_slices_that_are_due_are_planned_together_unless_one_cannot_wait() -> None:
    assert next_steps(MaintenanceState(due_slices=3, planned_ago=BUNCH - 1), SETTINGS) == []
    assert next_steps(MaintenanceState(due_slices=3, planned_ago=BUNCH), SETTINGS) == [Step.PLAN]
    assert next_steps(MaintenanceState(due_slices=3, planned_ago=0, urgent=True), SETTINGS) == [Step.PLAN]
    assert next_steps(MaintenanceState(due_slices=0, planned_ago=100), SETTINGS) == []


def test_cleaning_is_due_when_nobody_reads_as_of_before_a_compaction_any_more() -> None:
    replacing = ["20270101000000005", "20270101000000009"]
    state = MaintenanceState(replacing=replacing, cleaned_ago=BUNCH, readable="20270101000000005")
    assert next_steps(state, SETTINGS) == [Step.CLEAN]
    assert next_steps(replace(state, readable="20270101000000004"), SETTINGS) == []
    assert next_steps(replace(state, cleaned_ago=BUNCH - 1), SETTINGS) == []


def test_what_readers_held_at_the_last_cleaning_is_looked_at_again() -> None:
    assert next_steps(MaintenanceState(kept=1, cleaned_ago=10 * BUNCH), SETTINGS) == [Step.CLEAN]
    assert next_steps(MaintenanceState(kept=0, cleaned_ago=10 * BUNCH), SETTINGS) == []


@pytest.mark.parametrize(
    ("completed", "archivable", "expected"), [(55, 9, []), (56, 9, [Step.ARCHIVE]), (56, 4, []), (99, 5, [Step.ARCHIVE])]
)
def test_archiving_waits_for_a_handful_that_may_go(completed: int, archivable: int, expected: list[Step]) -> None:
    assert next_steps(MaintenanceState(completed=completed, archivable=archivable), SETTINGS) == expected


def test_settings_close_together_make_smaller_handfuls() -> None:
    settings = replace(SETTINGS, archive_min=40, archive_max=41)
    assert next_steps(MaintenanceState(completed=42, archivable=1), settings) == [Step.ARCHIVE]


def test_automatic_services_can_be_turned_off() -> None:
    settings = replace(SETTINGS, archive_automatic=False, clean_automatic=False)
    assert next_steps(MaintenanceState(kept=1, cleaned_ago=100, completed=100, archivable=50), settings) == []


def test_the_order_is_archiving_planning_cleaning() -> None:
    state = MaintenanceState(due_slices=1, urgent=True, kept=1, cleaned_ago=100, completed=100, archivable=50)
    assert next_steps(state, SETTINGS) == [Step.ARCHIVE, Step.PLAN, Step.CLEAN]
