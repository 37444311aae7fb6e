"""A commit that may stand is never rolled back: its slot may name the rows that a rollback would delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import (
    OutcomeUnknownError,
    ReopenTable,
    StoreDeniedError,
    StoreFullError,
    TablesError,
    TransactionError,
)
from headgate_tables.storage.store import Outcome
from support.handles import open_on
from support.systems import FaultyStore, system
from support.tables import create, notes, rows


def table_on(tmp_path: Path) -> tuple[hudi.Table, FaultyStore]:
    """A table with a row, owned by the handle that is returned; its clock does not wait between attempts."""
    url = create(tmp_path, system=system()).url
    store = FaultyStore(Path(url.removeprefix("file://")))
    table = open_on(store, system())
    table.upsert(rows(("a", 1, "x")))
    return table, store


@pytest.mark.parametrize("created", [True, False])
def test_an_interrupt_while_the_slot_is_sent_takes_nothing_of_the_commit_away(tmp_path: Path, created: bool) -> None:
    """Nobody knows then whether the slot was won; a rollback would delete the rows that it names."""
    table, store = table_on(tmp_path)

    def before(path: str) -> Outcome | None:
        if "/slot/" in path and not created:
            raise KeyboardInterrupt
        return None

    def after(path: str, outcome: Outcome) -> Outcome:
        if "/slot/" in path:
            raise KeyboardInterrupt
        return outcome

    store.before_create, store.after_create = before, after
    with pytest.raises(KeyboardInterrupt):
        table.upsert(rows(("b", 1, "x")))
    store.before_create, store.after_create = (lambda path: None), (lambda path, outcome: outcome)
    with pytest.raises((ReopenTable, TransactionError), match="Open the table again"):
        table.upsert(rows(("c", 1, "x")))
    again = hudi.open_table(table.url, system=system())
    again.upsert(rows(("d", 1, "x")))
    assert notes(again) == dict.fromkeys("abd" if created else "ad", "x")
    assert again.verify().ok


@pytest.mark.parametrize("error", [StoreFullError, StoreDeniedError])
def test_a_refusal_after_an_unknown_outcome_does_not_make_it_known(tmp_path: Path, error: type[TablesError]) -> None:
    """The first attempt created the slot and its answer was lost; that the second is refused says nothing of the first."""
    table, store = table_on(tmp_path)
    attempts: list[str] = []

    def lose_the_answer(path: str, outcome: Outcome) -> Outcome:
        return Outcome.UNKNOWN if "/slot/" in path else outcome

    def refuse_the_second(path: str) -> Outcome | None:
        attempts.extend([path] * ("/slot/" in path))
        if len(attempts) > 1:
            raise error("refused", fix="Wait.")
        return None

    store.after_create, store.before_create = lose_the_answer, refuse_the_second
    with pytest.raises(OutcomeUnknownError, match="Open the table again"):
        table.upsert(rows(("b", 1, "x")))
    again = hudi.open_table(table.url, system=system())
    again.upsert(rows(("c", 1, "x")))
    assert notes(again) == dict.fromkeys("abc", "x")
