"""The chart's release: installed, upgraded, rolled back by helm, and looked at by kubectl."""

import enum
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from k8s.kubectl import Kubectl, wait_until


class Part(enum.Enum):
    """A workload of the chart, by the value of its component label."""

    COORDINATOR = "coordinator"
    WRITER = "writer"
    COMPACTOR = "compactor"
    REDIS = "redis"


KINDS = {Part.COORDINATOR: "statefulset", Part.WRITER: "statefulset", Part.COMPACTOR: "deployment", Part.REDIS: "deployment"}


class HelmError(Exception):
    """helm refused. The message is what it said."""


class Release:
    """One release. ``values``: a file that comes below those of each call; those of an upgrade come on top of those before."""

    def __init__(self, kubectl: Kubectl, name: str, helm: str, chart: str, values: str = "") -> None:
        self.kubectl = kubectl
        self.name = name
        self._helm = helm
        self._chart = chart
        self._files = [f"--values={values}"] if values else []

    def install(self, values: Mapping[str, Any]) -> None:
        """Returns when the objects are made, not when they are ready. Raises HelmError."""
        self._run("install", self.name, self._chart, *self._files, "--values=-", stdin=json.dumps(values))

    def upgrade(self, values: Mapping[str, Any]) -> None:
        self._run("upgrade", self.name, self._chart, "--reuse-values", "--values=-", stdin=json.dumps(values))

    def uninstall(self) -> None:
        """Returns when the objects are deleted. Secrets that the chart made stay."""
        self._run("uninstall", self.name, "--wait", "--ignore-not-found")

    def roll_back(self) -> None:
        self._run("rollback", self.name)

    def labels(self, part: Part) -> Mapping[str, str]:
        return {"app.kubernetes.io/instance": self.name, "app.kubernetes.io/component": part.value}

    def pods(self, part: Part) -> Sequence[Any]:
        """Those that are not on their way out."""
        return self.kubectl.list_living("pods", self.labels(part))

    def workload(self, part: Part) -> Any:
        return self.kubectl.get(KINDS[part], f"{self.name}-{part.value}")

    def scale(self, part: Part, replicas: int) -> None:
        self.kubectl.run("scale", KINDS[part], f"{self.name}-{part.value}", f"--replicas={replicas}")

    def restart(self, *parts: Part) -> None:
        """A rollout of each, at the same time. Returns at once."""
        self.kubectl.run("rollout", "restart", *(f"{KINDS[part]}/{self.name}-{part.value}" for part in parts))

    def wait_rolled_out(self, timeout: float = 300) -> None:
        """Until each workload has as many ready pods as it wants, all of its newest template.

        kubectl watches for that without load on the machine that is measured. It does not wait for pods that a smaller workload
        lets go: the look behind it does.
        """
        for part, kind in KINDS.items():
            self.kubectl.run(
                "rollout", "status", f"{kind}/{self.name}-{part.value}", f"--timeout={timeout:.0f}s", timeout=timeout + 10
            )
        wait_until("all workloads are rolled out", lambda: all(is_rolled_out(self.workload(part)) for part in Part), timeout)

    def _run(self, *args: str, stdin: str = "") -> str:
        command = [self._helm, "--namespace", self.kubectl.namespace, *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise HelmError(done.stderr.strip())
        return done.stdout


def is_rolled_out(workload: Mapping[str, Any]) -> bool:
    """Of a Deployment or StatefulSet, as the API server has it."""
    spec, status = workload["spec"], workload.get("status", {})
    wanted = spec.get("replicas", 1)
    counts = [status.get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")]
    if status.get("updateRevision", "") != status.get("currentRevision", "") and wanted:
        return False
    return status.get("observedGeneration", 0) >= workload["metadata"]["generation"] and counts == [wanted] * 3


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def node_of(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def restarts_of(pod: Mapping[str, Any]) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))
