"""An S3 server in a process of its own: versitygw where it is there, else moto's.

versitygw (``./task`` builds it where Go is installed) is a program that others run in production: it keeps objects as files and
decides conditional writes itself. moto keeps everything in memory, answers about 160 requests a second and is right only behind a
lock of ours (``moto_server.py``). Tests run both, too (``tests/support/s3.py``).
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from demo.ports import free_port

BUCKET = "headgate-demo"
ACCESS_KEY, SECRET_KEY, REGION = "demo", "demo-secret", "us-east-1"
Command = Callable[[int, Path], Sequence[str]]
"""Of a server, by its port on 127.0.0.1 and an empty folder."""


def moto(port: int, _: Path) -> Sequence[str]:
    return [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(port)]


def versitygw(port: int, folder: Path) -> Sequence[str]:
    """Objects lie below ``folder``; what S3 knows of them beside their bytes in a folder of its own, as tmpfs may have no room
    for it in extended attributes.
    """
    objects, metadata = folder / "objects", folder / "metadata"
    objects.mkdir()
    metadata.mkdir()
    program = os.environ["HEADGATE_VERSITYGW"]
    server = [program, "--quiet", "--port", f"127.0.0.1:{port}", "--access", ACCESS_KEY, "--secret", SECRET_KEY]
    return [*server, "posix", "--sidecar", str(metadata), str(objects)]


def best() -> Command:
    """The one to take when one is enough."""
    return versitygw if "HEADGATE_VERSITYGW" in os.environ else moto


@contextmanager
def serving(command: Sequence[str], port: int) -> Iterator[None]:
    """The server listens on entry and is gone at the end. Raises RuntimeError if it ends, or is not there within 30 s."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True) as process:
        try:
            _wait_until_it_listens(process, port)
            yield
        finally:
            process.kill()  # asked to end, it would wait for its clients


@contextmanager
def demo_store(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a store in one empty bucket, and what services and readers need in their environment to reach it."""
    import boto3  # here, as ./task interop has the servers and no boto3

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    folder.mkdir()
    with serving(best()(port, folder), port):
        settings = {"region_name": REGION, "aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
        client = boto3.client("s3", endpoint_url=url, **settings)
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield (
            f"s3://{BUCKET}/lake",
            {
                "AWS_ENDPOINT": url,
                "AWS_ENDPOINT_URL": url,
                "AWS_REGION": REGION,
                "AWS_ACCESS_KEY_ID": ACCESS_KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "AWS_ALLOW_HTTP": "true",
            },
        )


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(1500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if (code := process.poll()) is not None:
            raise RuntimeError(f"{process.args!r} ended with {code} before it listened")
        time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} did not listen on port {port} within 30 s")
