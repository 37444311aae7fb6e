"""A test that waits for ever fails by itself, says where each of its tasks stands, and takes no other test with it."""

import asyncio
import inspect
import re
from pathlib import Path

import pytest

from support import time_limits
from support.time_limits import ended, limited


async def _waits_inside(event: asyncio.Event) -> None:
    await event.wait()


async def test_a_test_that_waits_for_ever_fails_and_says_where_its_tasks_wait(capsys: pytest.CaptureFixture[str]) -> None:
    async def waits_for_ever() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_waits_inside(asyncio.Event()), name="the other")
            await _waits_inside(asyncio.Event())

    with pytest.raises(TimeoutError):
        await limited(waits_for_ever, limit_s=0.05)()
    said = capsys.readouterr().err
    assert re.search(r"the other:\n.*test_time_limits\.py:\d+ _waits_inside", said), said
    assert said.count("_waits_inside") == 2, said


async def test_a_service_that_does_not_end_fails_its_test_and_says_where_it_waits(capsys: pytest.CaptureFixture[str]) -> None:
    service = asyncio.create_task(_waits_inside(asyncio.Event()), name="the service")
    with pytest.raises(TimeoutError, match="the service has not ended"):
        await ended(service, limit_s=0.05)
    assert re.search(r"the service:\n.*_waits_inside", capsys.readouterr().err)
    service.cancel()
    await ended(service)


async def test_a_test_within_its_limit_is_left_alone() -> None:
    seen = []

    async def passes(value: int) -> None:
        seen.append(value)

    await limited(passes, limit_s=60)(value=7)
    assert seen == [7]


async def test_the_async_tests_of_this_run_have_the_limit() -> None:
    assert Path(time_limits.__file__) in [Path(caller.filename) for caller in inspect.stack()]
