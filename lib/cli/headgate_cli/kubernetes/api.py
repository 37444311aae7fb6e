"""Secrets of one namespace, through Kubernetes's API, as the service account of this pod."""

import base64
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import quote

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts a service account's token, the API's authority and the namespace."""
_TIMEOUT_S = 20.0
_MANAGER = "headgate-credentials"
_FORBIDDEN = (401, 403)


@dataclass(frozen=True, slots=True)
class SecretsApi:
    """``host``: host:port of the API, with a certificate of ``authority``, a file. ``token``: of the service account."""

    host: str
    authority: Path
    namespace: str
    token: str = field(repr=False)

    @classmethod
    def of_this_pod(cls) -> "SecretsApi":
        """As the kubelet tells a pod. Raises CommandError outside of one."""
        account = ACCOUNT
        try:
            host = f"{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
            token, namespace = ((account / name).read_text().strip() for name in ("token", "namespace"))
        except (KeyError, OSError) as error:
            raise CommandError(
                f"this is no pod with a service account's token: {error}",
                fix="The chart's Job runs this command; it needs automountServiceAccountToken.",
                code=ExitCode.OPERATOR,
            ) from error
        return cls(host, account / "ca.crt", namespace, token)

    def read(self, name: str) -> tuple[Mapping[str, str], str]:
        """What the Secret holds, and its version; ({}, "") if there is none. Raises CommandError."""
        found = self._call("GET", name)
        if found is None:
            return {}, ""
        data = found.get("data") or {}
        return {key: _text(name, key, value) for key, value in data.items()}, found["metadata"]["resourceVersion"]

    def write(self, name: str, data: Mapping[str, str], version: str, labels: Mapping[str, str]) -> None:
        """Makes the Secret, or replaces what it holds. Raises CommandError, also if it is no longer at ``version``.

        It is applied, not created: only then does RBAC compare the name of a Secret that is not there yet.
        """
        metadata = {"name": name, "labels": dict(labels)} | ({"resourceVersion": version} if version else {})
        kind = "kubernetes.io/tls" if "tls.crt" in data else "Opaque"
        content = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": content}
        self._call("PATCH", name, json.dumps(body))

    def _call(self, method: str, name: str, body: str | None = None) -> dict[str, dict[str, str]] | None:
        """None: there is no such Secret."""
        path = f"/api/v1/namespaces/{quote(self.namespace)}/secrets/{quote(name)}"
        query = f"?fieldManager={_MANAGER}&force=true" if body else ""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/apply-patch+yaml"}
        try:
            trusted = ssl.create_default_context(cafile=str(self.authority))
            # Strict since Python 3.13: authorities of many clusters lack the extension keyUsage, which RFC 5280 wants.
            trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
            connection = HTTPSConnection(self.host, timeout=_TIMEOUT_S, context=trusted)
            try:
                connection.request(method, path + query, body, headers)
                answer = connection.getresponse()
                status, text = answer.status, answer.read()
            finally:
                connection.close()
        except (OSError, HTTPException) as error:
            raise CommandError(
                f"Kubernetes's API at {self.host} does not answer: {error}",
                fix="A NetworkPolicy or the API itself keeps this pod from it; the Job tries again.",
                code=ExitCode.RETRY_LATER,
            ) from error
        if status == 404 and method == "GET":
            return None
        if status // 100 != 2:
            raise _refused(method, name, status, text)
        answered: dict[str, dict[str, str]] = json.loads(text)
        return answered


def _text(name: str, key: str, value: str) -> str:
    try:
        return base64.b64decode(value).decode()
    except ValueError as error:  # of base64, or of UTF-8
        raise CommandError(
            f"{key} of the Secret {name} is no UTF-8 text",
            fix="Another program wrote it. Delete the Secret, so that it is made anew, or put the right text there.",
            code=ExitCode.OPERATOR,
        ) from error


def _refused(method: str, name: str, status: int, text: bytes) -> CommandError:
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"status {status}"
    forbidden = status in _FORBIDDEN
    return CommandError(
        f"{method} of the Secret {name} was refused: {message}",
        fix="The Role of the chart's Job names this Secret, with get, create and patch; was it changed?"
        if forbidden
        else "Run the Job again.",
        code=ExitCode.OPERATOR if forbidden else ExitCode.RETRY_LATER,
    )
