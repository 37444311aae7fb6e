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
_SHOWS = """
import sys
import grpc
from headgate_proto.api.v1 import ingest_pb2, ingest_pb2_grpc, tables_pb2, tables_pb2_grpc
part, address, token = sys.argv[1:]
shown = [("authorization", f"Bearer {token}")]
with open("/credentials/ca.crt", "rb") as ca:
    tls = grpc.ssl_channel_credentials(ca.read())
with grpc.secure_channel(address, tls) as channel:
    try:
        if part == "coordinator":
            tables_pb2_grpc.TableServiceStub(channel).Status(tables_pb2.StatusRequest(), metadata=shown, timeout=5)
        else:
            opening = ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(table="none", channel="none"))
            next(ingest_pb2_grpc.IngestServiceStub(channel).Append(iter([opening]), metadata=shown, timeout=5))
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""
"""A program that shows a token to one server, and prints the status code of the answer."""


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
    before = _newest_attempts(scene)
    write_secret(scene, client, "token", new)
    wait_until(
        "all programs have the new token",
        lambda: all(number > before[producer] for producer, number in _newest_attempts(scene).items()),
        MOUNTED_WITHIN_S,
        1,
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


def _answers(scene: Scene, token: str) -> list[str]:
    """The status code that each server has for the token."""
    codes = []
    for part in (Part.COORDINATOR, Part.WRITER):
        domain = f"{scene.release.name}-{part.value}.{scene.kubectl.namespace}.svc"  # as certificates have it
        for pod in scene.release.pods(part):
            address = f"{pod['metadata']['name']}.{domain}:{CLIENT_PORT}"
            codes.append(scene.in_a_producer("python", "-c", _SHOWS, part.value, address, token).strip())
    return codes


def _counts(scene: Scene, token: str) -> bool:
    return not {"UNAUTHENTICATED", "UNAVAILABLE", "DEADLINE_EXCEEDED"} & {*_answers(scene, token)}


def _counts_anywhere(scene: Scene, token: str) -> bool:
    return {*_answers(scene, token)} != {"UNAUTHENTICATED"}


def _newest_attempts(scene: Scene) -> dict[str, int]:
    return {attempt.producer: attempt.number for attempt in scene.notes.attempts()}
