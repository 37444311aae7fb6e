"""Writers come and go: by hand, and by the horizontal autoscaler."""

from collections.abc import Callable, Mapping

from k8s.external_metrics.manifests import external_metrics
from k8s.kubectl import wait_until
from k8s.release import Part
from k8s.scene import Scene
from k8s.shares import OVER, ROUNDS, ratio_after, written

EVENLY = 1.5
LOAD = ("burst-1", "burst-2", "burst-3")
LOAD_RATE, LOAD_BATCH = 4000.0, 100
SCALED_WITHIN_S = 300.0
METRICS_PORT = 9090
AUTOSCALED = {"enabled": True, "minReplicas": 2, "maxReplicas": 4, "cpuPercent": 50, "windowSeconds": 30}


def scaled_by_hand(writers: int) -> Callable[[Scene], None]:
    """Returns when so many writers share the load, or do not in time."""

    def act(scene: Scene) -> None:
        before = len(scene.watch.seen)
        scene.release.scale(Part.WRITER, writers)
        scene.release.wait_rolled_out()
        _wait_even(scene, before, writers)

    return act


def _wait_even(scene: Scene, since: int, writers: int) -> None:
    checkpoints: list[Mapping[str, int]] = []

    def found() -> float:
        checkpoints.extend(written(scene.store, commit) for commit in scene.watch.seen[since + len(checkpoints) :])
        try:
            return ratio_after([each for each in checkpoints if each], writers)
        except ValueError:
            return 0.0

    ratio = wait_until(f"{ROUNDS + OVER} checkpoints of {writers} writers", found, 120, 1.0)
    scene.figures[f"bytes of the fullest to the emptiest of {writers} writers"] = round(ratio, 2)
    if ratio > EVENLY:
        scene.findings.append(f"{writers} writers: the fullest has {ratio:.2f} times the bytes of the emptiest, above {EVENLY}")


def scaled_by_load(scene: Scene) -> None:
    """More producers come, and go again. The autoscaler is on for this alone."""
    scene.release.upgrade({"autoscaling": {"writer": AUTOSCALED}})
    try:
        scene.start_producers(*LOAD, rate=LOAD_RATE, batch=LOAD_BATCH)
        wait_until("four writers", lambda: _writers(scene) == 4, SCALED_WITHIN_S)
        scene.release.wait_rolled_out()
        _end_load(scene)
        wait_until("two writers", lambda: _writers(scene) == 2, SCALED_WITHIN_S)
    finally:
        _end_load(scene)
        scene.release.upgrade({"autoscaling": {"writer": {"enabled": False}}})
        scene.release.scale(Part.WRITER, 2)


def _end_load(scene: Scene) -> None:
    for name in LOAD:
        scene.kubectl.run("scale", "deployment", f"producer-{name}", "--replicas=0")


def held_bytes_are_read(scene: Scene) -> None:
    """What writers hold reaches the autoscaler as an external metric, by a server that stands in for prometheus-adapter."""
    sources = {part.value: f"{scene.release.name}-{part.value}:{METRICS_PORT}" for part in (Part.WRITER, Part.COORDINATOR)}
    served = external_metrics(scene.kubectl.namespace, scene.settings.image, sources)
    scene.kubectl.apply(*served["items"])
    scene.release.upgrade({"autoscaling": {"writer": {**AUTOSCALED, "cpuPercent": 0, "heldMiB": 1}}})
    try:
        scene.figures["bytes a writer holds, as the HPA reads it"] = wait_until("the HPA reads a figure", lambda: _held(scene))
    finally:
        scene.release.upgrade({"autoscaling": {"writer": {"enabled": False, "heldMiB": 0}}})
        for item in served["items"]:
            scene.kubectl.run("delete", item["kind"], item["metadata"]["name"], "--wait=false")


def _held(scene: Scene) -> str:
    """The average of all writers, as Kubernetes writes amounts; "" before the autoscaler has one."""
    status = scene.kubectl.get("hpa", f"{scene.release.name}-{Part.WRITER.value}").get("status", {})
    found = [each["external"] for each in status.get("currentMetrics") or () if each["type"] == "External"]
    is_active = any(each["type"] == "ScalingActive" and each["status"] == "True" for each in status.get("conditions") or ())
    return str(found[0]["current"].get("averageValue", "")) if is_active and found else ""


def _writers(scene: Scene) -> int:
    return int(scene.release.workload(Part.WRITER)["spec"]["replicas"])
