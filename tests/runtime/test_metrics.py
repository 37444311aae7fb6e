"""Metrics over HTTP, and names of users that do not grow without bound."""

import urllib.request
from dataclasses import dataclass

import pytest
from prometheus_client import Counter

from headgate_runtime.listening import ListenError
from headgate_runtime.metrics import CappedLabel, metrics, served, watch_access
from headgate_runtime.settings import ServiceSettings, load_settings
from support.processes import READY_S


def settings(*argv: str) -> ServiceSettings:
    return load_settings(ServiceSettings, argv, prog="svc", about="A service.")


async def test_what_is_counted_is_served_with_the_processs_own_figures() -> None:
    registry = metrics("writer")
    Counter("headgate_rows", "Rows taken", registry=registry).inc(42)
    with (
        served(registry, settings("--metrics-listen", "127.0.0.1:0")) as address,
        urllib.request.urlopen(f"http://{address}/metrics", timeout=READY_S) as answer,
    ):
        text = answer.read().decode()
    assert "headgate_rows_total 42.0" in text
    assert 'headgate_info{service="writer"} 1.0' in text
    assert "process_resident_memory_bytes" in text


async def test_without_an_address_nothing_is_served() -> None:
    with served(metrics("writer"), settings()) as address:
        assert address == ""


async def test_a_taken_address_is_an_error_at_the_start() -> None:
    registry = metrics("writer")
    with (
        served(registry, settings("--metrics-listen", "127.0.0.1:0")) as address,
        pytest.raises(ListenError, match=r"cannot listen on 127.0.0.1:\d+: .*in use\. .* choose another port"),
        served(metrics("writer"), settings("--metrics-listen", address)),
    ):
        pass


def test_a_label_has_a_bounded_number_of_values() -> None:
    label = CappedLabel(limit=2)
    assert [label.of(name) for name in ("a", "b", "c", "a", "d", "b")] == ["a", "b", "other", "a", "other", "b"]


@dataclass
class Access:
    """What is wrong with it."""

    file_problem: str = ""
    keys_problem: str = ""


def test_what_is_wrong_with_rights_shows_while_it_lasts() -> None:
    registry, access = metrics("writer"), Access()
    watch_access(registry, access)

    def shown() -> list[float | None]:
        return [registry.get_sample_value(name) for name in ("headgate_access_file_wrong", "headgate_issuer_keys_stale")]

    assert shown() == [0, 0]
    access.file_problem = "line 3: may holds 'everything'"
    assert shown() == [1, 0]
    access.file_problem, access.keys_problem = "", "no answer"
    assert shown() == [0, 1]
