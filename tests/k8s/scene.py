"""The cluster under test, as events see it: release, producers, the table's commits, and what was found on the way."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headgate_tables.storage.store import Store
from k8s.commits import CommitWatch
from k8s.kubectl import Kubectl, KubectlError, wait_until
from k8s.manifests import PART_OF, producer
from k8s.notes import Notes
from k8s.producer import Stream
from k8s.release import Part, Release, is_ready, node_of
from k8s.settings import Settings

SETTLED_COMMITS = 4
"""So many commits after an event say that the table goes on."""
CLIENT_PORT = 7070


@dataclass(slots=True)
class Scene:
    """``nodes``: names of those that take pods; ``store``: the table's folder; ``findings``: what is not as it has to be."""

    settings: Settings
    kubectl: Kubectl
    release: Release
    stream: Stream
    store: Store
    notes: Notes
    watch: CommitWatch
    nodes: Sequence[str]
    store_secret: str
    client_secret: str
    findings: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)

    def start_producers(self, *names: str, rate: float | None = None, batch: int | None = None) -> None:
        """One Deployment each, on the nodes in turn."""
        stream = replace(self.stream, rate=rate or self.stream.rate, batch=batch or self.stream.batch)
        for number, name in enumerate(names):
            node = self.nodes[number % len(self.nodes)]
            self.kubectl.apply(producer(name, stream, self.settings.image, node, self.store_secret, self.client_secret))

    def settle(self, timeout: float = 300) -> None:
        """Until everything runs that should, and the table commits."""
        self.release.wait_rolled_out(timeout)
        wait_until("all producers are ready", self._producers_are_ready, timeout)
        before = len(self.watch.seen)
        wait_until("the table commits", lambda: len(self.watch.seen) >= before + SETTLED_COMMITS, timeout, 0.1)

    def _producers_are_ready(self) -> bool:
        found = self.kubectl.list("deployments", {"app.kubernetes.io/part-of": PART_OF})
        return all(each["status"].get("readyReplicas", 0) == each["spec"]["replicas"] for each in found)

    def headgate(self, *command: str, timeout: float = 60) -> str:
        """What the command printed, called as a client of the cluster."""
        credentials = ["--connect", self.stream.address]
        if self.client_secret:
            credentials += ["--token-file", "/credentials/token", "--tls-ca", "/credentials/ca.crt"]
        return self.in_a_producer("headgate", *command, *credentials, timeout=timeout)

    def in_a_producer(self, *command: str, timeout: float = 60) -> str:
        """What a command printed in a producer's pod that is ready."""
        failure = "there is none"
        for pod in self.kubectl.list_living("pods", {"app.kubernetes.io/part-of": PART_OF}):
            if is_ready(pod):
                try:
                    return self.kubectl.run("exec", pod["metadata"]["name"], "--", *command, timeout=timeout)
                except KubectlError as error:
                    failure = str(error)
        raise KubectlError(f"no producer's pod could run {command[0]}: {failure}")

    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.headgate("status", "--json"))
        return found

    def owner(self) -> str:
        """The pod of the coordinator that owns the table."""

        def find() -> str:
            owners = [table["owner"] for table in self.status()["tables"] if table["name"] == self.stream.table]
            return next((owner for owner in owners if owner), "")

        return str(wait_until("the table has an owner", find, 60))

    def a_pod(self, part: Part, node: str = "") -> str:
        """The name of a ready one, on that node where one is given."""
        found = [pod for pod in self.release.pods(part) if is_ready(pod) and node in ("", node_of(pod))]
        if not found:
            raise KubectlError(f"there is no ready {part.value}{f' on {node}' if node else ''}")
        return str(found[0]["metadata"]["name"])

    def gone(self, pod: str, uid: str) -> bool:
        """Whether the pod of that name is another one by now, or none."""
        try:
            return bool(self.kubectl.get("pod", pod)["metadata"]["uid"] != uid)
        except KubectlError:
            return True

    def wait_ready_node(self, node: str, ready: bool, timeout: float = 180) -> None:
        wait_until(
            f"{node} is {'ready' if ready else 'lost'}", lambda: is_ready(self.kubectl.get("node", node)) is ready, timeout
        )

    def now(self) -> float:
        return time.time()
