"""Crashes at every file-system call of 20 commits: each returned one is there once, the one in flight whole or not at all."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from support.crash_script import COMMITS
from support.crashes import Recording, examine_all, processes, record
from support.strategies import new_folder

pytestmark = pytest.mark.slow

EVERY = int(os.environ.get("HEADGATE_CRASH_STEP", "3"))
"""Which power cuts are tried: every n-th. 1 tries all of them."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with processes() as pool:
        yield pool


@pytest.fixture(scope="module")
def recording(pool: ProcessPoolExecutor, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    found = pool.submit(record, tmp_path_factory.mktemp("recorded") / "table").result()
    assert len(found.kills) > 25 * COMMITS
    assert len(found.cuts) > 25 * COMMITS
    assert found.kills[-1].said == ("created", *["returned"] * COMMITS)
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    with new_folder() as name:
        yield Path(name)


def test_kill_at_every_file_system_call_loses_and_doubles_nothing(
    pool: ProcessPoolExecutor, recording: Recording, folder: Path
) -> None:
    assert examine_all(pool, recording.kills, folder) == []


def test_a_power_cut_at_any_call_takes_nothing_that_was_returned(
    pool: ProcessPoolExecutor, recording: Recording, folder: Path
) -> None:
    """Rule C1."""
    assert examine_all(pool, recording.cuts[::EVERY], folder) == []
