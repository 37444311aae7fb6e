"""The cluster that is attacked: one writer, and tokens for the attacker and for another client."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.access import write_access
from support.cluster import Cluster

MEMORY: Final = "512MiB"
"""Of the writer. The goals of the attacks on it are about this limit."""
TABLE: Final = "attacked"


@contextlib.contextmanager
def attacked_cluster(folder: Path) -> Iterator[Cluster]:
    """Its tokens are "alice-token", the attacker's, and "bob-token"; both may write and create every table."""
    access = write_access(folder / "access.toml", {"alice-token": "alice", "bob-token": "bob"})
    flags = ["--access", str(access)]
    options = {"coordinator": flags, "writer": [*flags, "--memory-limit", MEMORY]}
    with Cluster(folder / "cluster", writers=1, options=options, env={"HEADGATE_CLUSTER_TOKEN": "cluster-token"}) as cluster:
        yield cluster
