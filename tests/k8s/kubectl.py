"""kubectl with JSON in and out. Everything happens in one namespace."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from support import waiting

Manifest: TypeAlias = Mapping[str, Any]


def is_ending(found: Any) -> bool:
    """Whether an object, as ``Kubectl.get`` returns it, is being deleted."""
    return bool(found["metadata"].get("deletionTimestamp"))


class KubectlError(Exception):
    """kubectl refused. The message is what it said."""


class Kubectl:
    """``namespace``: of all calls."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def run(self, *args: str, stdin: str = "", timeout: float = 120) -> str:
        """Returns what kubectl printed. Raises KubectlError, also when it takes longer than ``timeout`` seconds."""
        command = ["kubectl", "--namespace", self.namespace, *args]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"kubectl {' '.join(args)} took longer than {timeout} s") from error
        if done.returncode:
            raise KubectlError(f"kubectl {' '.join(args)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def run_through(self, *args: str) -> None:
        """For a command that may fail, as its target ends under it."""
        with contextlib.suppress(KubectlError):
            self.run(*args)

    def get(self, kind: str, name: str) -> Any:
        return json.loads(self.run("get", kind, name, "--output=json"))

    def list(self, kind: str, labels: Mapping[str, str] | None = None) -> Sequence[Any]:
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        return list(json.loads(self.run("get", kind, f"--selector={selector}", "--output=json"))["items"])

    def list_living(self, kind: str, labels: Mapping[str, str] | None = None) -> Sequence[Any]:
        """Without those that are being deleted, which Kubernetes lists until they are gone."""
        return [each for each in self.list(kind, labels) if not is_ending(each)]

    def apply(self, *manifests: Manifest) -> None:
        self.run("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def delete_now(self, kind: str, name: str) -> None:
        """With grace 0: kubelet kills it at once, and nobody waits for that."""
        self.run("delete", kind, name, "--grace-period=0", "--force", "--wait=false")


def wait_until(what: str, holds: Callable[[], Any], timeout: float = 180, period: float = 0.5) -> Any:
    """``support.waiting.wait_until``, for which errors of kubectl count as not yet."""
    return waiting.wait_until(what, holds, timeout, period, KubectlError)


@contextlib.contextmanager
def namespace(name: str, *, keep: bool = False) -> Iterator[Kubectl]:
    """A new one, deleted at the end unless it is kept."""
    kubectl = Kubectl(name)
    kubectl.run("delete", "namespace", name, "--ignore-not-found", "--wait=true", timeout=180)
    kubectl.run("create", "namespace", name)
    kubectl.run("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    try:
        yield kubectl
    finally:
        if not keep:
            kubectl.run("delete", "namespace", name, "--wait=false")
