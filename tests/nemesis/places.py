"""Where the table lies in a run: on a disk of its own, or in an S3 server that keeps its objects on that disk."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from demo.ports import free_port
from demo.s3_server import ACCESS_KEY, SECRET_KEY, serving, versitygw
from support.disks import read_only, small_disk
from support.s3 import S3Endpoint, endpoint_at

DISK_BYTES = 8 << 30
BUCKET = "nemesis"
USER, USERS_SECRET = "cluster", "cluster-secret"


@dataclass(frozen=True, slots=True)
class Place:
    """``store``: of the cluster, as ``env`` lets its processes reach it. ``files``: where its content lies as files.

    ``disk``: the file system that holds this and nothing else. ``denied``: entered, nobody may do anything. ``judge``: how the
    checker reaches an S3 server.
    """

    store: str
    files: Path
    disk: Path
    denied: Callable[[], AbstractContextManager[None]]
    env: Mapping[str, str] = field(default_factory=dict)
    judge: S3Endpoint | None = None

    @property
    def options(self) -> Mapping[str, str] | None:
        """Storage options of ``open_table``."""
        return self.judge.options if self.judge else None

    @property
    def hudi_rs_options(self) -> Mapping[str, str] | None:
        return self.judge.hudi_rs_options if self.judge else None


@contextmanager
def local(folder: Path) -> Iterator[Place]:
    with small_disk(folder / "disk", DISK_BYTES) as disk:
        files = disk / "store"
        files.mkdir()
        yield Place(f"file://{files}", files, disk, partial(read_only, disk))


@contextmanager
def s3(folder: Path) -> Iterator[Place]:
    """versitygw, in which the cluster has an account of its own, and the checker another one."""
    if "HEADGATE_VERSITYGW" not in os.environ:
        sys.exit("nemesis: --store s3 needs versitygw, which ./task builds where Go is installed")
    users, port = folder / "users", free_port()
    users.mkdir()
    _admit(users, USER)
    with small_disk(folder / "disk", DISK_BYTES) as disk:
        command = [*versitygw(port, disk)]
        at = command.index("posix")
        command[at:at] = ["--iam-dir", str(users), "--iam-cache-disable"]
        with serving(command, port):
            root = endpoint_at(port, access_key=ACCESS_KEY, secret=SECRET_KEY)
            store = root.make_bucket(BUCKET) + "/lake"
            cluster = endpoint_at(port, access_key=USER, secret=USERS_SECRET)
            env = {f"AWS_{name.upper()}": value for name, value in cluster.options.items()}
            yield Place(store, disk / "objects" / BUCKET / "lake", disk, partial(_expired, users), env, root)


@contextmanager
def _expired(users: Path) -> Iterator[None]:
    """The cluster's credentials are good for nothing: all requests are answered with 403."""
    _admit(users)
    try:
        yield
    finally:
        _admit(users, USER)


def _admit(users: Path, *names: str) -> None:
    """The server reads its accounts with each request."""
    ids = {"userID": 0, "groupID": 0, "projectID": 0}
    accounts = {name: {"access": name, "secret": USERS_SECRET, "role": "admin", **ids} for name in names}
    draft = users / "draft"
    draft.write_text(json.dumps({"accessAccounts": accounts}), encoding="utf-8")
    draft.replace(users / "users.json")


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[Place]]] = {"local": local, "s3": s3}
