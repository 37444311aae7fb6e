"""What happens to the cluster while producers send: each event, what it may cost, and what it needs."""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from k8s.kubectl import wait_until
from k8s.nodes import node_crashed, node_cut, node_drained
from k8s.release import Part, is_ready, restarts_of
from k8s.rotation import certificates_rotated, tokens_rotated
from k8s.scaling import held_bytes_are_read, scaled_by_hand, scaled_by_load
from k8s.scene import Scene
from k8s.values import image_values

PLANNED_S, WRITER_KILLED_S, COORDINATOR_KILLED_S = 2.0, 5.0, 8.0
NODE_LOST_S, NODE_WITH_REDIS_LOST_S = 8.0, 20.0


class Need(enum.Enum):
    """What an event needs beside a cluster."""

    NOTHING = "nothing"
    NODE_FAULTS = "commands that crash, restart, cut and heal nodes (HEADGATE_K8S_NODE_…), and two nodes"
    TWO_NODES = "two nodes"
    METRICS = "metrics of pods (metrics-server)"
    OTHER_IMAGE = "another image (HEADGATE_K8S_OTHER_IMAGE)"


@dataclass(frozen=True, slots=True)
class Event:
    """``goal``: most seconds that the table may be without a new commit. ``act`` returns when it was done to the cluster.

    What ``act`` returns, seconds since the epoch, is when the wait counts from; None: the event's begin.
    """

    name: str
    goal: float
    act: Callable[[Scene], float | None]
    need: Need = Need.NOTHING


def restarted(*parts: Part) -> Callable[[Scene], None]:
    """A rollout of these, and its end."""

    def act(scene: Scene) -> None:
        scene.release.restart(*parts)
        scene.release.wait_rolled_out()

    return act


def other_image(scene: Scene) -> None:
    scene.release.upgrade({"image": image_values(scene.settings.other_image)})
    scene.release.wait_rolled_out()


def first_image(scene: Scene) -> None:
    scene.release.roll_back()
    scene.release.wait_rolled_out()


def owner_killed(scene: Scene) -> None:
    _kill(scene, scene.owner())


def killed(part: Part) -> Callable[[Scene], None]:
    return lambda scene: _kill(scene, scene.a_pod(part))


def _kill(scene: Scene, pod: str) -> None:
    uid = str(scene.kubectl.get("pod", pod)["metadata"]["uid"])
    scene.kubectl.delete_now("pod", pod)
    wait_until(f"{pod} is gone", lambda: scene.gone(pod, uid))


_EAT = """
import os, time
open('/proc/1/oom_score_adj', 'w').write('1000')
for number in range(1000):
    if not os.fork():
        full = b'x' * (32 << 20)
        time.sleep(600)
    time.sleep(0.02)
"""
"""Fills the container's memory. Each process that does is smaller than the service, so the kernel ends that one."""


def writer_out_of_memory(scene: Scene) -> None:
    pod = scene.a_pod(Part.WRITER)
    before = restarts_of(scene.kubectl.get("pod", pod))
    # The command ends with its container: that is what it is for.
    scene.kubectl.run_through("exec", pod, "--container=writer", "--", "python", "-c", _EAT)
    wait_until(f"{pod} was started again", lambda: restarts_of(scene.kubectl.get("pod", pod)) > before)
    wait_until(f"{pod} is ready again", lambda: is_ready(scene.kubectl.get("pod", pod)))
    [state] = [each for each in scene.kubectl.get("pod", pod)["status"]["containerStatuses"] if each["name"] == "writer"]
    reason = state["lastState"].get("terminated", {}).get("reason", "")
    if reason != "OOMKilled":
        scene.findings.append(f"the writer that ran out of memory ended by {reason or 'nothing'}, not OOMKilled")


EVENTS = (
    Event("writers 2 -> 4 by hand", PLANNED_S, scaled_by_hand(4)),
    Event("writers 4 -> 2 by hand", PLANNED_S, scaled_by_hand(2)),
    Event("rollout restart of writers", PLANNED_S, restarted(Part.WRITER)),
    Event("rollout restart of coordinators", PLANNED_S, restarted(Part.COORDINATOR)),
    Event("rollout restart of compactors", PLANNED_S, restarted(Part.COMPACTOR)),
    Event("rollout restart of Redis", PLANNED_S, restarted(Part.REDIS)),
    Event("rollout restart of all at once", PLANNED_S, restarted(*Part)),
    Event("another image is rolled out", PLANNED_S, other_image, Need.OTHER_IMAGE),
    Event("the image is rolled back", PLANNED_S, first_image, Need.OTHER_IMAGE),
    Event("the table's coordinator deleted, grace 0", COORDINATOR_KILLED_S, owner_killed),
    Event("a writer deleted, grace 0", WRITER_KILLED_S, killed(Part.WRITER)),
    Event("a compactor deleted, grace 0", PLANNED_S, killed(Part.COMPACTOR)),
    Event("Redis deleted, grace 0", PLANNED_S, killed(Part.REDIS)),
    Event("a writer over its memory limit", WRITER_KILLED_S, writer_out_of_memory),
    Event("certificates rotated", PLANNED_S, certificates_rotated),
    Event("tokens rotated", PLANNED_S, tokens_rotated),
    Event("a node drained, taken back, and pods spread again", PLANNED_S, node_drained, Need.TWO_NODES),
    Event("a node without Redis crashed", NODE_LOST_S, node_crashed, Need.NODE_FAULTS),
    Event("the node with Redis cut off, and healed", NODE_WITH_REDIS_LOST_S, node_cut, Need.NODE_FAULTS),
    # Last: a burst leaves ten times the files, which a takeover without a hand-over lists, and no cleaning takes away here.
    Event("writers 2 -> 4 -> 2 by the HPA", PLANNED_S, scaled_by_load, Need.METRICS),
    Event("what writers hold reaches the HPA", PLANNED_S, held_bytes_are_read, Need.METRICS),
)
