"""What must hold around every call that fails: its error says what to do, and nothing of the table has changed."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headgate_tables import hudi
from headgate_tables.errors import TablesError
from support.tables import as_text, rows


@contextmanager
def refused(error: type[TablesError], names: str, fix: str) -> Iterator[None]:
    """The block raises exactly ``error``; its message matches ``names``, its next step ``fix`` and is a whole sentence."""
    with pytest.raises(error, match=names) as caught:
        yield
    assert caught.type is error
    assert re.search(names, caught.value.message), "the column or file is named in the next step only"
    assert re.search(fix, caught.value.fix), caught.value.fix
    assert caught.value.fix.endswith(".")
    assert caught.value.fix[0].isupper()


def assert_refused(table: hudi.Table, call: Callable[[], object], error: type[TablesError], names: str, fix: str) -> None:
    """As ``refused``; what was committed is still there, no commit was added, and the next good call works."""
    before, commits = as_text(table.scan().to_table().to_pylist()), table.commits()
    with refused(error, names, fix):
        call()
    assert as_text(table.scan().to_table().to_pylist()) == before
    assert table.commits() == commits
    assert table.upsert(rows((f"good {len(commits)}", 1, "the next call"))).upserted == 1
    assert len(table.commits()) == len(commits) + 1
    assert table.scan().to_table().num_rows == len(before) + 1
    assert table.verify().ok
