"""What the acceptance is told about the cluster and this machine: environment variables."""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = "HEADGATE_K8S_"
NODE_FAULTS = ("crash", "restart", "cut", "heal")
_NUMBER = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Settings:
    """``host``: this machine's address as pods reach it: the S3 server runs here, outside of all nodes.

    ``build``: HEADGATE_IMAGE_BUILD, a command that gets ``CONTEXT NAME:TAG`` and options of docker build, and prints the path of
    an archive as its last line; ``load``: one that brings {archive} to every node. Without them the images have to be there.
    ``values``: a file of values that this cluster needs, such as the names of other images. ``node``: commands by fault, with
    {node} (its name) and {number} (the digits at its end).
    """

    host: str
    image: str = "headgate:acceptance"
    other_image: str = "headgate:acceptance-other"
    build: str = ""
    load: str = ""
    helm: str = "helm"
    chart: str = "deploy/k8s/headgate"
    values: str = ""
    namespace: str = "headgate-acceptance"
    node: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_fault_nodes(self) -> bool:
        return all(self.node.get(fault) for fault in NODE_FAULTS)

    def fault_node(self, fault: str, node: str) -> None:
        """Runs the command of that fault, and waits for its end."""
        number = found[0] if (found := _NUMBER.search(node)) else node
        run_command(self.node[fault], node=node, number=number)


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Raises SystemExit for what has to be set and is not."""
    names = ("host", "image", "other_image", "load", "helm", "chart", "values", "namespace")
    given = {name: environment.get(PREFIX + name.upper(), "") for name in names}
    if not given["host"]:
        raise SystemExit(f"k8s: set {PREFIX}HOST to an address of this machine that pods reach: the S3 server listens there")
    if not environment.get("HEADGATE_VERSITYGW"):
        raise SystemExit("k8s: there is no versitygw: ./task k8s builds it where Go is installed, or HEADGATE_VERSITYGW names it")
    if not environment.get("HEADGATE_S3RVER"):
        raise SystemExit("k8s: there is no s3rver: ./task k8s fetches it where npm is installed, or HEADGATE_S3RVER names it")
    given["helm"] = given["helm"] or environment.get("HEADGATE_HELM", "")
    given["build"] = environment.get("HEADGATE_IMAGE_BUILD", "")
    node = {fault: environment.get(f"{PREFIX}NODE_{fault.upper()}", "") for fault in NODE_FAULTS}
    return Settings(**{name: value for name, value in given.items() if value}, node=node)


def run_command(template: str, **values: str) -> str:
    """Runs a command of a setting and returns what it printed. ``{name}`` stands for a value. Raises SystemExit if it fails."""
    command = [word.format(**values) for word in shlex.split(template)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"k8s: {shlex.join(command)} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout.strip()
