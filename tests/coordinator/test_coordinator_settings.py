"""Settings of a coordinator: units, relations, storage options."""

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
