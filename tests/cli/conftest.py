"""Commands as tests of several files run them, and the cluster that they ask."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from demo.dev_cluster import DevCluster
from demo.ports import free_port
from headgate_cli.main import run


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """That of `headgate dev`, one for the whole file."""
    folder = tmp_path_factory.mktemp("dev")
    with DevCluster((folder / "tables").as_uri(), folder / "logs", "500ms", free_port()) as running:
        yield running


@pytest.fixture
def connected(cluster: DevCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask the cluster."""
    monkeypatch.setenv("HEADGATE_CONNECT", cluster.address)


@pytest.fixture
def headgate(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --json; returns the exit code, the lines on stdout, and the error."""

    def call(*arguments: str) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
        code = run([*arguments, "--json"])
        captured = capsys.readouterr()
        errors = [json.loads(line)["error"] for line in captured.err.splitlines()]
        return code, [json.loads(line) for line in captured.out.splitlines()], errors[0] if errors else {}

    return call
