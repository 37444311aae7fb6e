"""A stage's CPU is its own."""

import time
from types import SimpleNamespace

import pytest

from bench.profile.stages import Stages


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU until now, in one place."""
    clock = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    return clock


def test_a_stage_has_what_runs_in_it_without_the_stages_inside(spent: list[float]) -> None:
    stages = Stages()
    spent[0] += 100
    with stages.stage("write"):
        spent[0] += 1
        for _ in range(2):
            with stages.stage("encode"):
                spent[0] += 10
            spent[0] += 2
    spent[0] += 100
    with stages.stage("encode"):
        spent[0] += 5
    assert dict(stages.seconds) == {"write": 5, "encode": 25}


def test_a_watched_function_is_a_stage_until_the_end_also_when_it_fails(spent: list[float]) -> None:
    def fail() -> None:
        spent[0] += 3
        raise ValueError

    module, stages = SimpleNamespace(fail=fail), Stages()
    with stages.watching([(module, "fail", "failing")]), stages.stage("outer"):
        with pytest.raises(ValueError):  # noqa: PT011 - only its kind matters
            module.fail()
        spent[0] += 4
    assert dict(stages.seconds) == {"failing": 3, "outer": 4}
    assert module.fail is fail
