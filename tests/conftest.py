"""For the whole run: processes that tests start find `support`, too; in CI a test that skips itself fails."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from support import forked
from support.time_limits import limit_async_tests

_HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join([_HERE, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What `headgate dev` keeps of its clusters, programs of tests find there, too; a short path, as sockets lie in it."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.getbasetemp() / "state")


@pytest.fixture(scope="session", autouse=True)
def _forked_services(_own_state: None) -> Iterator[None]:
    """Services of clusters come from parents that have imported them once (support.forked)."""
    with forked.serving():
        yield


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SKIPS: dict[str, str] = {
    "tests/deploy/test_image.py::": "images come from a registry: HEADGATE_IMAGE_BUILD has to name a builder",
    "tests/deploy/test_composed.py::": "the same",
    "tests/cluster/test_upgrade.py::": "an earlier version of the project comes from the history, which a shallow clone lacks",
}
"""What CI may skip: how the id of a test begins, and why. What else tests need, CI's machine has or `.ci/run` installs.
`.ci/run` says at its end what was left out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped fails, unless tests/conftest.py lists it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    limit_async_tests(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judged((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judged((yield), collector.config)


def _judged(report: Report, config: pytest.Config) -> Report:
    """As it is, or failed: skipped, not by an expected failure, and not on the list."""
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and config.getoption("no_skips") and not report.nodeid.startswith(tuple(SKIPS)):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}\nWith --no-skips this fails: let .ci/run install what is missing, or list it in {__file__}."
    return report
