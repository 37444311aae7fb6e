"""The chart of deploy/k8s through a real Helm: `HEADGATE_HELM` names the program, which ./task builds where Go is installed."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate_cli.kubernetes.layout import ENDS

_ROOT = Path(__file__).resolve().parents[2]
CHART = _ROOT / "deploy" / "k8s" / "headgate"
RENDERED = _ROOT / "deploy" / "k8s" / "headgate.yaml"
TRIAL = CHART / "values-trial.yaml"
VALUES = {path.stem: path for path in (*sorted((_ROOT / "tests" / "deploy" / "values").glob("*.yaml")), TRIAL)}
"""Values files by name."""

VERSION = "1.35.0"
"""Of the Kubernetes that the chart was tried with."""
_LIMIT_S = 300.0

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """How a run of Helm ended."""

    code: int
    out: str
    errors: str


def helm(*arguments: str | Path) -> Said:
    """Runs Helm. Skips the test where it is absent."""
    program = os.environ.get("HEADGATE_HELM")
    if not program:
        pytest.skip("needs helm, which ./task builds where Go is installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    return Said(done.returncode, done.stdout, done.stderr)


def template(values: Path | None, *settings: str, release: str = "headgate", namespace: str = "headgate") -> Said:
    """A rendering of the chart; ``settings`` as --set takes them."""
    files: list[str | Path] = ["--values", values] if values else []
    options = [word for setting in settings for word in ("--set", setting)]
    return helm("template", release, CHART, "--namespace", namespace, "--kube-version", VERSION, *files, *options)


def manifests(rendered: str) -> list[Manifest]:
    """The objects of a rendering."""
    return [each for each in yaml.safe_load_all(rendered) if each]


def find(objects: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The one of this kind and name."""
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pods(objects: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Name of the workload and template of its pods, for each workload."""
    for each in objects:
        spec = each.get("spec", {})
        if "jobTemplate" in spec:
            yield each["metadata"]["name"], spec["jobTemplate"]["spec"]["template"]
        elif "template" in spec:
            yield each["metadata"]["name"], spec["template"]


def containers(pod: Manifest) -> list[Manifest]:
    """All of a pod, with those that start before others."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def container(pod: Manifest, name: str) -> Manifest:
    """One of a pod."""
    (found,) = [each for each in containers(pod) if each["name"] == name]
    return found


def secrets_of(pod: Manifest) -> set[str]:
    """Names of the Secrets that a pod does not start without."""
    found = {each["secret"]["secretName"] for each in pod["spec"].get("volumes", []) if "secret" in each}
    for each in containers(pod):
        found |= {source["secretRef"]["name"] for source in each.get("envFrom", [])}
        references = [entry["valueFrom"].get("secretKeyRef") for entry in each.get("env", []) if "valueFrom" in entry]
        found |= {reference["name"] for reference in references if reference}
    return found


def made_secrets(objects: Sequence[Manifest]) -> set[str]:
    """Names of those that the Job makes, and cert-manager."""
    found = {each["spec"]["secretName"] for each in objects if each["kind"] == "Certificate"}
    for each in objects:
        if each["kind"] == "Job":
            arguments = each["spec"]["template"]["spec"]["containers"][0]["args"]
            parts = {word.removeprefix("--part=") for word in arguments if word.startswith("--part=")}
            ends = {end for end in ENDS if end.partition("-")[0] in parts or end in parts}
            ends -= {"redis-tls"} - parts
            found |= {f"headgate-{end}" for end in ends | ({"client"} if "access" in parts else set())}
    return found
