"""What a cluster needs to serve external metrics from the services' own: for `kubectl apply -f -`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s.external_metrics.server import GROUP

NAME = "external-metrics"
_SERVER = Path(__file__).parent / "server.py"
_VERSION = GROUP.rpartition("/")[2]
_API = GROUP.split("/")[2]
_LABELS = {"app.kubernetes.io/name": NAME}


def external_metrics(namespace: str, image: str, sources: Mapping[str, str]) -> dict[str, Any]:
    """A List of the APIService and what stands behind it. ``image``: Headgate's, which has all that the server imports.
    ``sources``: host:port of the metrics of writers and coordinators, of a headless service each.

    The APIService is the whole cluster's: delete it at the end. Where prometheus-adapter or KEDA is, it is theirs.
    """
    parts = (_api_service(namespace), _service(), _config(), _deployment(image, sources))
    items = [
        part if part["kind"] == "APIService" else part | {"metadata": part["metadata"] | {"namespace": namespace}}
        for part in parts
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _api_service(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{_VERSION}.{_API}"},
        "spec": {
            "service": {"name": NAME, "namespace": namespace, "port": 443},
            "group": _API,
            "version": _VERSION,
            "insecureSkipTLSVerify": True,  # its certificate is made when it starts
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }


def _service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"selector": _LABELS, "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    }


def _config() -> dict[str, Any]:
    text = _SERVER.read_text(encoding="utf-8")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"server.py": text}}


def _deployment(image: str, sources: Mapping[str, str]) -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": image,
        "command": ["python", "/server/server.py", *(f"--source={kind}={where}" for kind, where in sources.items())],
        "ports": [{"containerPort": 6443}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 6443, "scheme": "HTTPS"}, "periodSeconds": 2},
        "resources": {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "server", "mountPath": "/server"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "server", "configMap": {"name": NAME}}, {"name": "tmp", "emptyDir": {}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": _LABELS},
        "spec": {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": {"metadata": {"labels": _LABELS}, "spec": pod}},
    }
