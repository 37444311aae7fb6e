"""Writers and compactors that coordinators refuse: they end with the reason, where an orchestrator shows it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate_runtime.environment import ENVIRONMENT
from support.access import write_access
from support.processes import Process
from support.running_coordinator import running_coordinator


@pytest.mark.slow
@pytest.mark.parametrize("service", ["writer", "compactor"])
async def test_a_service_with_a_wrong_token_ends_and_its_last_line_says_why(service: str, tmp_path: Path, redis: str) -> None:
    """As long as it runs it is only not ready, and `kubectl describe` does not say why."""
    guarded: dict[str, Any] = {"access": str(write_access(tmp_path / "access.toml", {})), "cluster_token": "right"}
    async with running_coordinator(tmp_path / "store", redis, **guarded) as coordinator:
        module = f"headgate_{service}"
        flags = ["--log-format", "json", "--coordinator", coordinator.address, "--start-timeout", "500ms"]
        environment = {**ENVIRONMENT, "HEADGATE_CLUSTER_TOKEN": "wrong"}
        process = Process(service, [sys.executable, "-m", module, *flags], tmp_path / "log", env=environment, program=module)
        try:
            assert await asyncio.to_thread(process.wait_end) == 1
        finally:
            process.kill()
    said = json.loads(process.log.read_text(encoding="utf-8").splitlines()[-1])
    assert said["event"] == "service cannot start", process.tail()
    assert f"the coordinator at {coordinator.address} refuses this process, for 0.5 s now (start_timeout)" in said["why"]
    assert "cluster_token" in said["why"]
