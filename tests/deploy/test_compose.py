"""deploy/docker/compose.yaml and what it mounts, read by the programs' own readers. test_composed.py runs it."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate_compactor.settings import CompactorSettings
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.settings import PREFIX, ServiceSettings, load_settings
from headgate_writer.settings import WriterSettings
from support.compose import FILE, FOLDER, checked, filled, services

SETTINGS: dict[str, type[ServiceSettings]] = {
    "coordinator": CoordinatorSettings,
    "writer-1": WriterSettings,
    "writer-2": WriterSettings,
    "compactor": CompactorSettings,
}
SECRET = "0123456789abcdef"


@pytest.fixture
def found(tmp_path: Path) -> Mapping[str, Any]:
    return services(tmp_path, S3_SECRET=SECRET)


def test_compose_takes_the_file_and_would_refuse_a_typo(tmp_path: Path) -> None:
    text = filled(FILE.read_text(), {"S3_SECRET": SECRET})
    done = checked(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    wrong = checked(text.replace("stop_grace_period", "stop_grace_time"), tmp_path)
    assert wrong.returncode != 0
    assert "stop_grace_time" in wrong.stderr


def test_no_secret_is_in_the_file_and_without_one_it_says_what_to_do() -> None:
    with pytest.raises(KeyError, match=r"deploy/docker/\.env"):
        filled(FILE.read_text(), {})


@pytest.mark.parametrize("name", SETTINGS)
def test_each_service_takes_its_settings(
    name: str, found: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all files that it names there. A variable that no setting has would be ignored without a word."""
    service = found[name]
    for variable, value in service["environment"].items():
        if variable.startswith(PREFIX):
            assert variable.removeprefix(PREFIX).lower() in SETTINGS[name].model_fields, variable
            (file := tmp_path / value.strip("/")).parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            monkeypatch.setenv(variable, str(file) if value.startswith("/etc/headgate") else value)
    program, *flags = service["entrypoint"]
    assert program == f"headgate-{name.partition('-')[0]}"
    if "--config" in flags:
        (file := tmp_path / "settings.toml").write_text('redis = "rediss://headgate:secret@redis:6379/0"\n')
        flags[flags.index("--config") + 1] = str(file)
    settings = load_settings(SETTINGS[name], [*flags, *service["command"]], prog=program, about="")
    assert not settings.insecure
    assert settings.cluster_cert
    assert settings.access


def test_only_what_people_use_is_opened_and_on_this_machine_alone(found: Mapping[str, Any]) -> None:
    ports = {(name, port["published"]): port["host_ip"] for name, service in found.items() for port in service.get("ports", [])}
    assert {*ports.values()} == {"127.0.0.1"}
    assert {name for name, _ in ports} == {"coordinator", "writer-1", "writer-2", "prometheus", "grafana"}
    for name, service in found.items():
        for port in service.get("ports", []):
            advertised = service.get("environment", {}).get("HEADGATE_ADVERTISE", f"localhost:{port['published']}")
            assert advertised == f"localhost:{port['published']}", name
            assert int(port["published"]) == port["target"], name


def test_everything_runs_without_rights_and_with_a_read_only_root(found: Mapping[str, Any]) -> None:
    for name, service in found.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service


def test_only_what_makes_certificates_has_the_keys_of_authorities(found: Mapping[str, Any]) -> None:
    for name, service in found.items():
        mounts = [each for each in service.get("volumes", []) if each.get("source") == "credentials"]
        whole = [each for each in mounts if not each.get("volume", {}).get("subpath")]
        assert bool(whole) == (name == "credentials"), name
        assert all(each["read_only"] for each in mounts if each not in whole), name
        folders = {each["volume"]["subpath"]: each["target"] for each in mounts if each not in whole}
        assert "ca" not in folders
        assert all(target == f"/etc/headgate/{folder}" for folder, target in folders.items())


def test_prometheus_reads_every_service_and_grafana_reads_prometheus(found: Mapping[str, Any], tmp_path: Path) -> None:
    """Its configuration as promtool reads it, with the rules where it looks for them."""
    text = (FOLDER / "prometheus.yaml").read_text()
    for name in SETTINGS:
        assert found[name]["environment"]["HEADGATE_METRICS_LISTEN"] == "0.0.0.0:9090"
        assert f'"{name}:9090"' in text
    mounts = {each["target"]: Path(each["source"]) for each in found["prometheus"]["volumes"] if each["type"] == "bind"}
    assert all(source.is_file() for source in mounts.values())
    (rules := tmp_path / "rules.yaml").write_text(mounts["/etc/prometheus/rules.yaml"].read_text())
    (config := tmp_path / "prometheus.yaml").write_text(text.replace("/etc/prometheus/rules.yaml", str(rules)))
    assert str(rules) in config.read_text()
    [port] = found["prometheus"]["ports"]
    assert f"url: http://prometheus:{port['target']}\n" in (FOLDER / "grafana/datasources/prometheus.yaml").read_text()
    assert f"--web.listen-address=:{port['target']}" in found["prometheus"]["command"]
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run(["promtool", "check", "config", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_grafana_finds_the_dashboard_where_it_looks(found: Mapping[str, Any]) -> None:
    grafana = found["grafana"]
    mounts = {each["target"]: Path(each["source"]) for each in grafana["volumes"] if each["type"] == "bind"}
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert json.loads(mounts[home].read_text())["uid"] == "headgate"
    assert f"options: {{path: {Path(home).parent}}}" in (FOLDER / "grafana/dashboards/headgate.yaml").read_text()
    assert mounts["/etc/grafana/provisioning"] == FOLDER / "grafana"
