"""Certificates and tokens are replaced while producers send, as the manual says, without any restart."""

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping

from k8s.kubectl import wait_until
from k8s.release import Part
from k8s.scene import CLIENT_PORT, Scene

MADE_ANEW = ("tls", "cluster-coordinator", "cluster-writer", "cluster-compactor")
"""Secrets with certificates of programs' and of services' servers."""
MOUNTED_WITHIN_S = 240.0
"""kubelet looks at mounted Secrets about once a minute."""
_SHOWN = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], int(sys.argv[2]))))"


def certificates_rotated(scene: Scene) -> None:
    """Clients' and services' certificates are made anew by the same authority. Returns when all servers show them."""
    names = [f"{scene.release.name}-{each}" for each in MADE_ANEW]
    before = {name: secret(scene, name) for name in names}
    scene.kubectl.run("delete", "secret", *names)  # pods keep what is mounted
    _make_credentials(scene)
    after = {name: secret(scene, name) for name in names}
    same = [
        f"{name}/{key}" for name in names for key in before[name] if key != "ca.crt" and after[name].get(key) == before[name][key]
    ]
    if same:
        scene.findings.append(f"certificates that stayed the same after they were to be made anew: {same}")
    shown = after[names[0]]["tls.crt"].split("-----END")[0]
    wait_until(
        "all servers show the new certificate", lambda: all(s.startswith(shown) for s in _shown(scene)), MOUNTED_WITHIN_S, 3
    )


def tokens_rotated(scene: Scene) -> None:
    """A second token is added and given to the programs, and the first one is taken away when all have the second."""
    access, client = f"{scene.release.name}-access", f"{scene.release.name}-client"
    text, old = secret(scene, access)["access.toml"], secret(scene, client)["token"].strip()
    digest = hashlib.sha256(old.encode()).hexdigest()
    [line] = [line for line in text.splitlines() if digest in line]
    new = f"second-{hashlib.sha256(f'{old}{time.time_ns()}'.encode()).hexdigest()}"
    more = line.replace(digest, hashlib.sha256(new.encode()).hexdigest())
    write_secret(scene, access, "access.toml", text.replace(line, f"{line}\n{more}"))
    wait_until("the new token counts everywhere", lambda: _counts(scene, new), MOUNTED_WITHIN_S, 3)
    attempts = len(scene.notes.attempts())
    write_secret(scene, client, "token", new)
    producers = len({attempt.producer for attempt in scene.notes.attempts()})
    wait_until(
        "all programs have the new token", lambda: len(scene.notes.attempts()) >= attempts + producers, MOUNTED_WITHIN_S, 1
    )
    write_secret(scene, access, "access.toml", re.sub(f"^{re.escape(line)}$", more, text, flags=re.MULTILINE))
    wait_until("the old token does not count any more", lambda: not _counts_anywhere(scene, old), MOUNTED_WITHIN_S, 3)


def secret(scene: Scene, name: str) -> Mapping[str, str]:
    data = scene.kubectl.get("secret", name).get("data", {})
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def write_secret(scene: Scene, name: str, key: str, text: str) -> None:
    patch = {"data": {key: base64.b64encode(text.encode()).decode()}}
    scene.kubectl.run("patch", "secret", name, "--type=merge", f"--patch={json.dumps(patch)}")


def _make_credentials(scene: Scene) -> None:
    """Now, instead of when the CronJob is due."""
    job = f"rotate-{int(time.time())}"
    scene.kubectl.run("create", "job", job, f"--from=cronjob/{scene.release.name}-credentials")
    scene.kubectl.run("wait", "--for=condition=Complete", f"job/{job}", "--timeout=120s", timeout=150)


def _servers(scene: Scene) -> list[str]:
    """Addresses of all pods that clients call."""
    return [pod["status"]["podIP"] for part in (Part.COORDINATOR, Part.WRITER) for pod in scene.release.pods(part)]


def _shown(scene: Scene) -> list[str]:
    return [scene.in_a_producer("python", "-c", _SHOWN, address, str(CLIENT_PORT)).strip() for address in _servers(scene)]


def _status(address: str, token: str) -> str:
    """A program that asks one coordinator for its status and prints the error, or nothing."""
    return f"""
import headgate
try:
    tls = headgate.Tls(ca="/credentials/ca.crt")
    with headgate.connect("{address}:{CLIENT_PORT}", token="{token}", tls=tls, timeout=5) as hg:
        hg.status()
except headgate.HeadgateError as error:
    print(type(error).__name__)
"""


def _answers(scene: Scene, token: str) -> list[str]:
    domain = f"{scene.release.name}-{Part.COORDINATOR.value}.{scene.kubectl.namespace}.svc"  # as certificates have it
    names = [f"{pod['metadata']['name']}.{domain}" for pod in scene.release.pods(Part.COORDINATOR)]
    return [scene.in_a_producer("python", "-c", _status(name, token)).strip() for name in names]


def _counts(scene: Scene, token: str) -> bool:
    return not any(_answers(scene, token))


def _counts_anywhere(scene: Scene, token: str) -> bool:
    return any(answer != "UnauthenticatedError" for answer in _answers(scene, token))
