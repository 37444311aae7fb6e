"""Gauges of a coordinator: read on its event loop at each scrape, and gone with the ownership of a table."""

import asyncio
import math
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from headgate_coordinator import gauges
from headgate_coordinator.gauges import Figures, Gauges, TableFigures
from headgate_runtime.metrics import CappedLabel


def figures(*tables: str, **changed: float) -> Figures:
    made = TableFigures(**changed)  # type: ignore[arg-type]
    return Figures(writers=2, compactors=1, redis_reachable=True, tables=dict.fromkeys(tables, made))


async def scrape(read: Callable[[], Figures], *, limit: int = 1000) -> CollectorRegistry:
    registry = CollectorRegistry()
    Gauges(registry, asyncio.get_running_loop(), read, CappedLabel(limit))
    await asyncio.to_thread(generate_latest, registry)
    return registry


async def values(read: Callable[[], Figures], name: str, *, limit: int = 1000) -> dict[str, float]:
    registry = await scrape(read, limit=limit)
    families = await asyncio.to_thread(lambda: list(registry.collect()))
    return {",".join(sample.labels.values()): sample.value for each in families for sample in each.samples if sample.name == name}


async def test_figures_are_read_on_the_event_loops_thread() -> None:
    loop = asyncio.get_running_loop()

    def read() -> Figures:
        assert asyncio.get_running_loop() is loop
        return figures("t", uncommitted_bytes=5)

    assert await values(read, "headgate_uncommitted_bytes") == {"t": 5}
    assert await values(read, "headgate_writers") == {"": 2}


async def test_a_table_that_is_lost_leaves_no_figure_behind() -> None:
    now = [figures("t", intake_stopped=1), figures()]
    registry = CollectorRegistry()
    Gauges(registry, asyncio.get_running_loop(), lambda: now.pop(0), CappedLabel())
    before = await asyncio.to_thread(generate_latest, registry)
    after = await asyncio.to_thread(generate_latest, registry)
    assert b'headgate_intake_stopped{table="t"} 1.0' in before
    assert b"headgate_intake_stopped{" not in after
    assert b"headgate_tables_owned 0.0" in after


async def test_no_limit_is_infinite_and_uncounted_slices_have_no_figure() -> None:
    registry = await scrape(lambda: figures("t"))
    text = (await asyncio.to_thread(generate_latest, registry)).decode()
    assert 'headgate_intake_limit_bytes_per_second{table="t"} +Inf' in text
    assert "headgate_fullest_slice_log_files{" not in text
    assert math.inf == TableFigures().intake_limit


async def test_tables_beyond_the_limit_of_names_show_the_largest_figure() -> None:
    many = Figures(
        writers=0,
        compactors=0,
        redis_reachable=True,
        tables={name: TableFigures(uncommitted_bytes=nbytes) for name, nbytes in (("a", 1), ("b", 9), ("c", 4))},
        alarms={"": ["store_denied"], "b": ["clock", "clock"], "c": ["clock"]},
    )
    assert await values(lambda: many, "headgate_uncommitted_bytes", limit=1) == {"a": 1, "other": 9}
    assert await values(lambda: many, "headgate_alarm", limit=0) == {",store_denied": 1, "other,clock": 3}


async def test_a_scrape_fails_with_the_error_and_when_the_loop_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Figures:
        raise RuntimeError("half built")

    with pytest.raises(RuntimeError, match="half built"):
        await scrape(broken)
    monkeypatch.setattr(gauges, "ANSWER_S", 0.01)
    registry = CollectorRegistry()
    Gauges(registry, asyncio.get_running_loop(), figures, CappedLabel())
    with pytest.raises(TimeoutError):
        generate_latest(registry)  # on the loop's own thread, which cannot answer meanwhile
