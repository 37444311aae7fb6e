"""Nodes that are lost, cut off and drained. The commands for that come from the settings."""

from collections.abc import Sequence
from typing import Any

from k8s.kubectl import Kubectl, KubectlError, is_ending, wait_until
from k8s.release import Part, node_of
from k8s.scene import Scene

EVICTED_WITHIN_S = 180.0


def node_crashed(scene: Scene) -> None:
    """The one without Redis: a power cut, and the machine comes back."""
    node = _other_than(scene, _node_of_redis(scene))
    scene.settings.fault_node("crash", node)
    try:
        _note_dns(scene, node)
        scene.wait_ready_node(node, ready=False)
        wait_until("the table commits", _commits_from_now(scene), 60, 0.1)
    finally:
        scene.settings.fault_node("restart", node)
    scene.wait_ready_node(node, ready=True)


def node_cut(scene: Scene) -> float:
    """The one with Redis. Returns when Kubernetes evicted Redis from it: until then nobody can take a table over."""
    node = _node_of_redis(scene)
    lost = [pod["metadata"]["name"] for pod in scene.release.pods(Part.REDIS)]
    scene.settings.fault_node("cut", node)
    try:
        scene.wait_ready_node(node, ready=False)
        wait_until("Redis is evicted", lambda: _evicted(scene, lost), EVICTED_WITHIN_S, 0.2)
        evicted = scene.now()
        wait_until("the table commits", _commits_from_now(scene), 120, 0.1)
    finally:
        scene.settings.fault_node("heal", node)
    scene.wait_ready_node(node, ready=True)
    return evicted


def node_drained(scene: Scene) -> None:
    """With disruption budgets in force. Pods that are not the release's stay: the cluster may be shared.

    Kubernetes never moves pods back, so all of them would be on one node for what comes next: a restart spreads them again.
    """
    node = _node_of_redis(scene)
    ours = f"--pod-selector=app.kubernetes.io/instance={scene.release.name}"
    drain = ("drain", node, ours, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=240s")
    try:
        scene.kubectl.run(*drain, timeout=300)
        scene.figures["pods left on the drained node"] = len(_pods_on(scene, node))
    finally:
        scene.kubectl.run("uncordon", node)
    scene.settle()
    scene.release.restart(Part.COORDINATOR, Part.WRITER)
    scene.release.wait_rolled_out()
    for part in (Part.COORDINATOR, Part.WRITER):
        if len({node_of(pod) for pod in scene.release.pods(part)}) == 1:
            scene.findings.append(f"all pods of {part.value} are on one node, though there are {len(scene.nodes)}")


def _note_dns(scene: Scene, node: str) -> None:
    """Where the node had all of the cluster's DNS servers, its crash stopped whoever looked for a name.

    Looks after the command, which may spread them first: Kubernetes notices a crash much later, and still lists what ran there.
    """
    servers = Kubectl("kube-system").list_living("pods", {"k8s-app": "kube-dns"})
    there = sum(node_of(each) == node for each in servers)
    scene.figures["DNS servers of the cluster on the crashed node"] = f"{there} of {len(servers)}"
    if servers and there == len(servers):
        scene.findings.append(f"all DNS servers of the cluster are on {node}, which was crashed: spread them before")


def _commits_from_now(scene: Scene) -> Any:
    before = len(scene.watch.seen)
    return lambda: len(scene.watch.seen) >= before + 3


def _node_of_redis(scene: Scene) -> str:
    [redis] = scene.release.pods(Part.REDIS)
    return node_of(redis)


def _other_than(scene: Scene, node: str) -> str:
    return next(each for each in scene.nodes if each != node)


def _evicted(scene: Scene, pods: Sequence[str]) -> bool:
    try:
        return all(is_ending(scene.kubectl.get("pod", pod)) for pod in pods)
    except KubectlError as error:
        return "NotFound" in str(error)


def _pods_on(scene: Scene, node: str) -> Sequence[Any]:
    return [pod for part in Part for pod in scene.release.pods(part) if node_of(pod) == node]
