"""The services of deploy/docker/compose.yaml, run with its commands, settings, volumes and names, in unpacked images.

Not run: Docker itself, and Grafana, of which there is no package (test_compose.py reads what it is given). In the place of images
that the file names, Redis and Prometheus are Debian's, and versitygw is what `./task` builds.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.compose import services
from support.image import built_image, support_image
from support.machine import Machine
from support.processes import child_environment

pytestmark = pytest.mark.slow
LIMIT_S = 300
SERVICES = ("coordinator", "writer-1", "writer-2", "compactor")
MAKERS = {"valkey": "valkey", "versitygw": "versity", "prometheus": "prom"}


def test_the_cluster_of_the_compose_file_takes_rows_and_is_watched(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    images = {"headgate:": built_image(tmp_path_factory)}
    images |= {f"{maker}/{name}:": support_image(tmp_path_factory, name) for name, maker in MAKERS.items()}
    found = services(tmp_path, S3_SECRET="0123456789abcdef")
    with Machine(tmp_path / "machine", found, images) as machine:
        machine.run("credentials")
        machine.run("bucket")
        for name in ("redis", "s3", "prometheus"):
            machine.start(name)
        for name in SERVICES:  # one by one: an image's first start reads it from the disk, and all of them have one
            machine.start(name).wait_ready(LIMIT_S)
        client = machine.volume("credentials") / "client"
        published = [
            f"{port['published']}={machine.addresses[name]}:{port['target']}"
            for name, service in found.items()
            if name in machine.running
            for port in service.get("ports", [])
        ]
        program = [sys.executable, "-m", "support.compose_client", str(client / "ca.crt"), str(client / "token"), *published]
        done = subprocess.run(
            machine.on_machine(program), env=child_environment({}), capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["written"] == 400
        assert said["targets"] == {f"{name}:9090": "up" for name in SERVICES}
        assert said["rules"] > 0
        objects = [path for path in (machine.volume("objects") / "objects" / "headgate").rglob("*.log.*") if path.is_file()]
        assert objects, "rows lie in the bucket"
        for name in reversed(SERVICES):
            machine.running[name].expect_end()
            os.kill(machine.pid(name), signal.SIGTERM)
            assert machine.running[name].wait_end() == 0, machine.running[name].tail()
