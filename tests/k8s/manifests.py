"""Producers as Deployments, each pinned to a node: while one node is lost, those on others send on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from k8s.kubectl import Manifest
from k8s.producer import Stream

TESTS = Path(__file__).resolve().parent.parent
PROGRAM = ("k8s/__init__.py", "k8s/producer.py", "k8s/notes.py", "support/workload.py")
"""What a producer imports that is not in the image."""
PART_OF = "headgate-acceptance"
FOLDER, CREDENTIALS = "/program", "/credentials"
PRODUCER_CPU = "80m"
"""Less: starting pods hold producers up, and that counts as time without a commit. More: not all fit on one node of 2 cores."""


def program() -> Manifest:
    """A ConfigMap; keys cannot have slashes."""
    data = {path.replace("/", "."): (TESTS / path).read_text(encoding="utf-8") or "\n" for path in PROGRAM}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "producer-program"}, "data": data}


def secret(name: str, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(data)}


def producer(name: str, stream: Stream, image: str, node: str, store: str, client: str, replicas: int = 1) -> Manifest:
    """``store``: the Secret with the store's environment; ``client``: the one with token and ca.crt, "" for none."""
    labels = {"app.kubernetes.io/part-of": PART_OF, "app.kubernetes.io/component": "producer", "producer": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"producer-{name}", "labels": labels},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"producer": name}},
            "template": {"metadata": {"labels": labels}, "spec": _pod(name, stream, image, node, store, client)},
        },
    }


def one_command(name: str, command: Sequence[str], image: str, client: str, env: Mapping[str, str]) -> Manifest:
    """A pod that runs one command with the Secret ``client`` at hand, once, and leaves its last words."""
    container = {
        "name": "command",
        "image": image,
        "command": list(command),
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {**_restricted(container, _volumes(client), "20m"), "restartPolicy": "Never"},
    }


def _pod(name: str, stream: Stream, image: str, node: str, store: str, client: str) -> Mapping[str, Any]:
    volumes = {FOLDER: {"name": "program", "configMap": {"name": "producer-program", "items": _items()}}, **_volumes(client)}
    container = {
        "name": "producer",
        "image": image,
        "command": ["python", "-u", "-m", "k8s.producer"],
        "env": _environment(name, stream, client),
        "envFrom": [{"secretRef": {"name": store}}],
    }
    pinned = {"kubernetes.io/hostname": node} if node else {}
    return {**_restricted(container, volumes, PRODUCER_CPU), "nodeSelector": pinned, "terminationGracePeriodSeconds": 60}


def _volumes(client: str) -> Mapping[str, Any]:
    """By the folder where they are mounted."""
    credentials = {CREDENTIALS: {"name": "credentials", "secret": {"secretName": client}}} if client else {}
    return {**credentials, "/tmp": {"name": "tmp", "emptyDir": {}}}


def _restricted(container: Mapping[str, Any], volumes: Mapping[str, Any], cpu: str) -> Mapping[str, Any]:
    """A pod of that container as the namespace admits it."""
    secured = {
        **container,
        "imagePullPolicy": "IfNotPresent",
        "volumeMounts": [{"name": volume["name"], "mountPath": path} for path, volume in volumes.items()],
        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [secured],
        "volumes": list(volumes.values()),
    }


def _items() -> Sequence[Mapping[str, str]]:
    return [{"key": path.replace("/", "."), "path": path} for path in PROGRAM]


def _environment(name: str, stream: Stream, client: str) -> Sequence[Mapping[str, Any]]:
    told = {key: str(value) for key, value in asdict(stream).items()} | {"name": name}
    told |= {"token": f"{CREDENTIALS}/token" if client else "", "ca": f"{CREDENTIALS}/ca.crt" if client else ""}
    values = [{"name": f"PRODUCER_{key.upper()}", "value": value} for key, value in told.items()]
    pod = {"name": "PRODUCER_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [{"name": "PYTHONPATH", "value": FOLDER}, pod, *values]
