"""Settings of a coordinator: units, relations, storage options."""

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.settings import load_settings


def loaded(*argv: str) -> CoordinatorSettings:
    return load_settings(CoordinatorSettings, ["--store", "/s", *argv], prog="headgate-coordinator", about="")


def test_flags_carry_their_units() -> None:
    settings = loaded("--checkpoint-interval", "1m", "--checkpoint-bytes", "64MiB", "--channel-retention", "30d")
    assert (settings.checkpoint_interval, settings.checkpoint_bytes) == (60.0, 64 << 20)
    assert settings.channel_retention == 30 * 86400.0


@pytest.mark.parametrize("text", ["region=eu,allow_http=true", '{"region": "eu", "allow_http": "true"}'])
def test_storage_options_are_pairs_or_json(text: str) -> None:
    assert loaded("--storage-options", text).storage_options == {"region": "eu", "allow_http": "true"}


def test_settings_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADGATE_STORAGE_OPTIONS", "region=eu")
    monkeypatch.setenv("HEADGATE_LEASE_TTL", "9s")
    settings = loaded()
    assert (settings.storage_options, settings.lease_ttl) == ({"region": "eu"}, 9.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"writer_timeout": 1.0, "heartbeat_interval": 0.5}, "heartbeat_interval"),
        ({"lease_ttl": 3.0}, "lease_renewal"),
        ({"checkpoint_min_interval": 20.0}, "checkpoint_min_interval"),
        ({"checkpoint_timeout": 1.0}, "checkpoint_timeout"),
        ({"name": "two words"}, "name"),
        ({"cluster": "a b"}, "cluster"),
        ({"storage_options": "region"}, "storage_options"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_by_name(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CoordinatorSettings(store="/s", **wrong)  # type: ignore[arg-type]
    assert named in str(refused.value)


@pytest.mark.parametrize("setting", ["channel_retention", "lease_ttl", "checkpoint_interval", "drain_timeout", "expiry_interval"])
def test_a_time_without_an_end_is_refused_by_name(setting: str) -> None:
    with pytest.raises(ValidationError, match=setting):
        CoordinatorSettings(store="/s", **{setting: math.inf})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "others", "few", "many"),
    [
        ("heartbeat_interval", {"writer_timeout": 40000.0, "checkpoint_timeout": 50000.0}, (0.0004, 0.01), (3600.0, 3601.0)),
        ("compactor_timeout", {}, (0.004, 0.1), (36000.0, 36001.0)),
    ],
)
def test_heartbeats_come_as_often_as_their_message_can_say(
    setting: str, others: dict[str, float], few: tuple[float, float], many: tuple[float, float]
) -> None:
    """In whole milliseconds, of which 0 and more than an hour are refused by writers and compactors."""
    for wrong in (few[0], many[1]):
        with pytest.raises(ValidationError, match=setting):
            CoordinatorSettings(store="/s", **others, **{setting: wrong})  # type: ignore[arg-type]
    for right in (few[1], many[0]):
        CoordinatorSettings(store="/s", **others, **{setting: right})  # type: ignore[arg-type]
