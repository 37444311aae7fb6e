"""Every block of every page runs here as it stands, or is in a list with the reason, or with the test that holds it."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.page_session import OUTPUT, PageSession, compare
from support.pages import ROOT, Block, blocks, pages
from support.tiers import slow_but
from support.warm_headgate import warm_headgate

RUN = (
    "README.md",
    "lib/client/README.md",
    "lib/tables/README.md",
    "docs/load.md",
    "docs/read.md",
    "docs/stream.md",
    "docs/operate.md",
)
"""Pages whose blocks run, each page against a cluster of its own."""
AS_INSTALLED = ("README.md", "lib/client/README.md", "lib/tables/README.md")
"""Pages whose ``headgate`` is the installed program; the others have many commands, and one that has been imported before."""
LANGUAGES = ("python", "sh", OUTPUT)

_DOCKER = "needs Docker; tests/deploy/test_image.py and tests/deploy/test_composed.py do the same with a builder of images"
_STORY = "tests/spark_source/test_story.py, where PySpark 4 is"
_OPERATIONS = "tests/docs/test_operations_page.py"
ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("README.md", "./task demo"): "stages of .ci/run",
    ("CONTRIBUTING.md", "./task test"): "stages of .ci/run",
    ("CONTRIBUTING.md", "./task contracts"): "writes a file of the repository",
    ("CONTRIBUTING.md", "scripts/lock.sh"): "asks a package registry for everything",
    (
        "docs/kubernetes.md",
        "kubectl create namespace headgate",
    ): "needs Kubernetes; tests/deploy/test_kubernetes_page.py renders it",
    ("docs/cli.md", "headgate completion"): "changes the shell's own settings; tests/cli/test_command_line.py",
    ("docs/load.md", "headgate load 's3://"): "needs a bucket; tests/cli/load/test_remote_files.py",
    ("docs/kubernetes.md", "headgate.connect("): "tests/deploy/test_kubernetes_page.py",
    ("docs/kubernetes.md", "externalRules:"): "tests/deploy/test_kubernetes_page.py",
    ("docs/kubernetes.md", "apiVersion: v1"): "tests/deploy/test_kubernetes_page.py",
    ("docs/docker.md", "docker build"): _DOCKER,
    ("docs/docker.md", "cd deploy/docker"): _DOCKER,
    ("docs/operations.md", "[tokens]"): _OPERATIONS,
    ("docs/operations.md", "--jwt-issuer"): "flags of a service, which test_commands.py checks",
    ("docs/operations.md", "--client-ca"): "flags of a service, which test_commands.py checks",
    ("docs/operations.md", "[[roles]]"): _OPERATIONS,
    ("docs/operations.md", "[[quotas]]"): _OPERATIONS,
    ("docs/operations.md", "ACL SETUSER"): _OPERATIONS,
    (
        "docs/operations.md",
        "headgate table adopt",
    ): "wants a table with times of the future, as tests/cluster/test_moved_clock.py has",
    ("lib/spark/README.md", "from headgate_spark"): "tests/spark/test_readme.py, where Spark is",
    ("docs/spark.md", "from pyspark.sql import"): _STORY,
    ("docs/spark.md", "headgate dev --store lake"): _STORY,
    ("docs/spark.md", "headgate table adopt flights"): _STORY,
    ("docs/spark.md", "to_cluster"): _STORY,
    ("docs/spark.md", "headgate compact flights"): _STORY,
    ("docs/spark.md", "route ="): _STORY,
    ("lib/spark/README.md", "orders.write.format"): "tests/spark_source/test_readme.py, where PySpark 4 is",
}
"""By page and beginning of the block's first line: why it does not run here, or which test holds it."""


def of_pages() -> Iterator[Block]:
    for page in pages():
        yield from blocks(page)


def reasons(block: Block) -> list[tuple[str, str]]:
    return [key for key in ELSEWHERE if key[0] == block.page and block.text.startswith(key[1])]


@pytest.mark.parametrize("page", slow_but(["README.md"], RUN))
async def test_the_blocks_of_a_page_do_one_after_the_other_what_the_page_says(page: str, tmp_path: Path) -> None:
    own = [block for block in blocks(page) if not reasons(block)]
    assert own, "the page has no blocks any more"
    work = tmp_path / "work"
    work.mkdir()
    with (
        Cluster(tmp_path / "cluster", compactors=1, options={"coordinator": ["--checkpoint-interval", "500ms"]}) as cluster,
        contextlib.nullcontext() if page in AS_INSTALLED else warm_headgate(tmp_path / "programs") as programs,
    ):
        session = PageSession(cluster.address, work, {"file:///tmp/": work.as_uri() + "/"}, programs=programs)
        for block in own:
            await session.work_through(block)


def test_no_block_is_left_out_without_a_reason() -> None:
    unknown = [block for block in of_pages() if not reasons(block) and not (block.page in RUN and block.language in LANGUAGES)]
    assert not [f"{block.page}:{block.line}: {block.text.splitlines()[0]}" for block in unknown]


def test_every_reason_is_for_a_block() -> None:
    assert {key for block in of_pages() for key in reasons(block)} == ELSEWHERE.keys()
    assert not [key for key, why in ELSEWHERE.items() if not why]


def test_every_test_that_a_reason_names_is_there() -> None:
    named = [word.rstrip(",;") for why in ELSEWHERE.values() for word in why.split() if word.startswith("tests/")]
    assert named
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_what_a_block_prints_is_compared_with_what_the_page_shows() -> None:
    compare("id  day\n1   …", "id day\n\n1 2026-01-01\nlast", "here")
    for shown in ("id\nday", "last\nid", "1 2026-01-02", "i"):
        with pytest.raises(AssertionError, match="which is not in"):
            compare(shown, "id day\n1 2026-01-01\nlast", "here")
