"""`headgate dev` of another environment's Python: for tests in an environment that has no services."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from demo.dev_cluster import DevCluster
from demo.ports import free_port


@contextlib.contextmanager
def dev_cluster(folder: Path, *, compactors: int = 0) -> Iterator[tuple[str, Path]]:
    """Address and store (``folder/store``) of a cluster; programs of this process find its credentials, as XDG_STATE_HOME is its
    own.

    ``HEADGATE_CLUSTER_PYTHON``: the Python that has the services.
    """
    store, python = folder / "store", os.environ["HEADGATE_CLUSTER_PYTHON"]
    sizes = ["--writers", "1", "--compactors", str(compactors)]
    with DevCluster(str(store), folder / "logs", "1s", free_port(), python=python, options=sizes) as cluster:
        yield cluster.address, store
