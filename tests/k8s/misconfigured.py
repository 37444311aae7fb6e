"""Installations that cannot work: each ends in a message that says what to do, in ``kubectl describe`` of a pod or from helm."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from k8s.kubectl import Kubectl, wait_until
from k8s.manifests import CREDENTIALS, one_command, secret
from k8s.outside_s3 import OutsideS3
from k8s.release import HelmError, Part, Release
from k8s.scene import Scene
from k8s.values import STORE_SECRET, good_values
from support.certificates import DAY, Authority

SAID_WITHIN_S = 180.0
START_TIMEOUT = "10s"
"""What pods wait for Redis and the store before they end; 60s if nobody says otherwise."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Trial:
    """``scene``: the cluster that works; ``kubectl``: of the namespace of those that do not."""

    scene: Scene
    kubectl: Kubectl
    good: OutsideS3
    read_only: OutsideS3
    unconditional: OutsideS3

    def last_words(self, name: str, store: OutsideS3, values: Mapping[str, Any] | None = None) -> str:
        """What ``kubectl describe`` shows of the coordinators of a small release on that store. ``values`` come on top.

        Raises HelmError, TimedOut when none of them ends.
        """
        settings = self.scene.settings
        self.kubectl.apply(secret(STORE_SECRET, store.environment))
        release = Release(self.kubectl, name, settings.helm, settings.chart, settings.values)
        release.install(merged(_small(good_values(settings, store.endpoint)), values or {}))
        try:
            return _described_failure(self.kubectl, release.labels(Part.COORDINATOR))
        finally:
            release.uninstall()


def a_typo(trial: Trial) -> str:
    try:
        return trial.last_words("typo", trial.good, {"writer": {"replica": 2}})
    except HelmError as error:
        return str(error)


def no_redis(trial: Trial) -> str:
    values = {"redis": {"bundled": False, "address": "127.0.0.1:6399", "existingSecret": "no-redis"}}
    trial.kubectl.apply(secret("no-redis", {"password": "none"}))
    return trial.last_words("no-redis", trial.good, values)


def a_bucket_that_cannot_be_written(trial: Trial) -> str:
    return trial.last_words("read-only", trial.read_only)


def a_store_that_ignores_conditions(trial: Trial) -> str:
    return trial.last_words("unconditional", trial.unconditional)


def an_expired_certificate(trial: Trial) -> str:
    """Of coordinators among services; the others are valid."""
    name, authority = "expired", Authority(trial.good.folder.parent.parent / "authority")
    for end in ("tls", "redis-tls", "cluster-coordinator", "cluster-writer", "cluster-compactor"):
        valid = -HOUR if end == "cluster-coordinator" else DAY
        made = authority.issue(end, ["localhost"], valid=valid)
        files = {"tls.crt": made.cert, "tls.key": made.key, "ca.crt": authority.cert}
        trial.kubectl.apply(secret(f"{name}-{end}", {key: file.read_text() for key, file in files.items()}))
    return trial.last_words(name, trial.good, {"credentials": {"certificates": "existing"}})


def a_wrong_token(trial: Trial) -> str:
    """Of a program in the namespace of the cluster that works."""
    scene = trial.scene
    command = ("headgate", "status", "--connect", scene.stream.address, "--tls-ca", f"{CREDENTIALS}/ca.crt")
    wrong = {"HEADGATE_TOKEN": "wrong"}
    scene.kubectl.apply(one_command("wrong-token", command, scene.settings.image, scene.client_secret, wrong))
    try:
        return _described_failure(scene.kubectl, {"app": "wrong-token"})
    finally:
        scene.kubectl.delete_now("pod", "wrong-token")


CASES: Mapping[str, tuple[Callable[[Trial], str], str]] = {
    "a value with a typo": (a_typo, r"(?s)replica.* is not allowed|additional properties 'replica' not allowed"),
    "no Redis": (no_redis, r"Redis at rediss://127\.0\.0\.1:6399\S* does not answer"),
    "a bucket that cannot be written": (a_bucket_that_cannot_be_written, r"bucket's policy permits"),
    "a store that ignores conditions": (a_store_that_ignores_conditions, r"ignores conditional writes"),
    "an expired certificate": (an_expired_certificate, r"the certificate in \S+ has expired"),
    "a wrong token": (a_wrong_token, r"no token, or one that is not known"),
}
"""What is wrong, and what has to be said about it, as a pattern. docs/kubernetes.md: "When it does not start"."""


def judge_misconfigured(trial: Trial, chosen: Callable[[str], bool]) -> Iterator[tuple[str, float, str]]:
    """Name, seconds until it was said, and what is not as it has to be ("" when all is well) of each case."""
    for name, (case, pattern) in CASES.items():
        if chosen(name):
            began = time.time()
            said = case(trial)
            yield name, time.time() - began, "" if re.search(pattern, said) else f"nothing says {pattern!r}: {said[-600:]}"


def _described_failure(kubectl: Kubectl, labels: Mapping[str, str]) -> str:
    """What ``kubectl describe`` shows of pods with those labels once a container of theirs has ended by a failure."""

    def failed() -> bool:
        return any(failures(pod) for pod in kubectl.list("pods", labels))

    wait_until("a pod ends and says why", failed, SAID_WITHIN_S)
    return kubectl.run("describe", "pods", "--selector", ",".join(f"{key}={value}" for key, value in labels.items()))


def failures(pod: Mapping[str, Any]) -> int:
    """Containers that ended by a failure and left a message."""
    states = [each.get(when, {}) for each in pod["status"].get("containerStatuses", []) for when in ("state", "lastState")]
    ends = [state["terminated"] for state in states if "terminated" in state]
    return sum(1 for end in ends if end["exitCode"] and end.get("message"))


def _small(values: Mapping[str, Any]) -> Mapping[str, Any]:
    few = {"coordinator": {"replicas": 1, "settings": {"start_timeout": START_TIMEOUT}}}
    return merged(values, {**few, "writer": {"replicas": 1}, "compactor": {"replicas": 0}})


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: merged(below[name], value) for name, value in above.items() if isinstance(value, dict) and name in below}
    return {**below, **above, **both}
