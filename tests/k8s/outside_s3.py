"""The S3 servers of the acceptance: on this machine, outside of all nodes, so that they outlive those that are lost."""

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
S3RVER_KEY = "S3RVER"
"""The one that s3rver knows, and its secret."""
READY_S = 30.0


@dataclass(frozen=True, slots=True)
class OutsideS3:
    """``endpoint``: as pods reach it; ``folder``: where the bucket's objects lie as plain files."""

    endpoint: str
    folder: Path
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY

    @property
    def environment(self) -> Mapping[str, str]:
        """What services and readers need."""
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
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
    server = OutsideS3(f"http://{host}:{port}", objects / BUCKET)
    with serving(_versitygw(host, port, objects, metadata), server) as client:
        client.create_bucket(Bucket=BUCKET)
        yield server


@contextmanager
def read_only_s3(host: str, port: int, folder: Path) -> Iterator[OutsideS3]:
    """versitygw with one empty bucket that can be listed, and not be written."""
    objects, metadata = folder / "objects", folder / "metadata"
    (objects / BUCKET).mkdir(parents=True)
    metadata.mkdir()
    server = OutsideS3(f"http://{host}:{port}", objects / BUCKET)
    with serving(_versitygw(host, port, objects, metadata, "--readonly"), server):
        yield server


@contextmanager
def unconditional_s3(host: str, port: int, folder: Path) -> Iterator[OutsideS3]:
    """s3rver with one empty bucket: it ignores If-None-Match."""
    folder.mkdir(parents=True)
    command = ["node", os.environ["HEADGATE_S3RVER"], "-d", str(folder), "-a", host, "-p", str(port), "-s", "--no-vhost-buckets"]
    server = OutsideS3(f"http://{host}:{port}", folder / BUCKET, S3RVER_KEY, S3RVER_KEY)
    with serving(command, server) as client:
        client.create_bucket(Bucket=BUCKET)
        yield server


def _versitygw(host: str, port: int, objects: Path, metadata: Path, *options: str) -> Sequence[str]:
    server = [
        os.environ["HEADGATE_VERSITYGW"],
        "--quiet",
        "--port",
        f"{host}:{port}",
        "--access",
        ACCESS_KEY,
        "--secret",
        SECRET_KEY,
        *options,
    ]
    return [*server, "posix", "--sidecar", str(metadata), str(objects)]


@contextmanager
def serving(command: Sequence[str], server: OutsideS3) -> Iterator[Any]:
    """A client of ``server``, which ``command`` starts and which answers on entry. Raises RuntimeError if it ends, TimedOut if it
    does not within READY_S.
    """
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True) as process:
        client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name=REGION,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
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
