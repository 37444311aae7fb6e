"""The S3 server of the acceptance: on this machine, outside of all nodes, so that it outlives those that are lost."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions

from support.waiting import wait_until

ACCESS_KEY, SECRET_KEY, REGION, BUCKET = "acceptance", "acceptance-secret", "us-east-1", "headgate"
READY_S = 30.0


@dataclass(frozen=True, slots=True)
class OutsideS3:
    """``endpoint``: as pods reach it; ``folder``: where the bucket's objects lie as plain files."""

    endpoint: str
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What services and readers need."""
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ALLOW_HTTP": "true",
        }

    @property
    def options(self) -> Mapping[str, str]:
        """The same for ``open_store``."""
        return {name.removeprefix("AWS_").lower(): value for name, value in self.environment.items()}


@contextmanager
def outside_s3(host: str, port: int, folder: Path) -> Iterator[OutsideS3]:
    """versitygw with one empty bucket. It listens on entry and is gone at the end."""
    objects, metadata = folder / "objects", folder / "metadata"
    for each in (objects, metadata):
        each.mkdir(parents=True)
    with serving(_versitygw(host, port, objects, metadata), f"http://{host}:{port}") as client:
        client.create_bucket(Bucket=BUCKET)
        yield OutsideS3(f"http://{host}:{port}", objects / BUCKET)


def _versitygw(host: str, port: int, objects: Path, metadata: Path) -> Sequence[str]:
    server = [
        os.environ["HEADGATE_VERSITYGW"],
        "--quiet",
        "--port",
        f"{host}:{port}",
        "--access",
        ACCESS_KEY,
        "--secret",
        SECRET_KEY,
    ]
    return [*server, "posix", "--sidecar", str(metadata), str(objects)]


@contextmanager
def serving(command: Sequence[str], endpoint: str) -> Iterator[Any]:
    """A client of the server, which answers on entry. Raises RuntimeError if it ends, TimedOut if it does not
    within READY_S.
    """
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True) as process:
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY
        )
        try:
            _wait_until_it_answers(process, client)
            yield client
        finally:
            client.close()
            process.kill()


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", client: Any) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} has ended with {process.returncode}")
        with contextlib.suppress(botocore.exceptions.ClientError):  # it answers, and says no
            client.list_buckets()
        return True

    wait_until(f"{process.args!r} serves", answers, READY_S, not_yet=botocore.exceptions.BotoCoreError)
