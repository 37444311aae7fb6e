"""The examples of docstrings and READMEs run as they stand, against a real cluster."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

import headgate
from demo.dev_cluster import DevCluster
from demo.ports import free_port
from headgate.maintenance import Maintenance
from support.certificates import self_signed
from support.pages import ROOT, fenced

BLOCK = re.compile(r"::\n\n((?:(?: {4}.*)?\n)+)")
"""What stands indented behind a paragraph that ends with two colons."""


@dataclass(frozen=True)
class Example:
    where: str
    code: str


def in_docstrings() -> Iterator[Example]:
    for path in sorted((ROOT / "lib/client/headgate").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "::\n\n" in text else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = inspect.cleandoc(ast.get_docstring(node) or "") + "\n"
                for found in BLOCK.finditer(text):
                    yield Example(f"{path.stem}.{getattr(node, 'name', '')}", textwrap.dedent(found[1]))


def in_readmes() -> Iterator[Example]:
    for name in ("README.md", "lib/tables/README.md"):
        for code in fenced(name, "python"):
            yield Example(name, code)


EXAMPLES = [*in_docstrings(), *in_readmes()]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dev")
    with DevCluster((folder / "tables").as_uri(), folder / "logs", "500ms", free_port()) as cluster:
        yield cluster.address


@pytest.fixture
def names(address: str) -> Iterator[dict[str, object]]:
    """What the examples take for granted: a connection, a table with a commit, a channel, rows, and a program's own functions."""
    now = datetime.now(UTC)
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    order = {"id": 1, "day": "2026-01-01", "at": now}
    with headgate.connect(address) as hg:
        orders = hg.create_table("orders", schema, key="id", ordering="at", partition_by="day", exist_ok=True)
        with orders.channel("examples") as ch:
            if not ch.committed_offset:
                ch.upsert(order)
                ch.flush()
            yield {
                "headgate": headgate,
                "pa": pa,
                "datetime": datetime,
                "Maintenance": Maintenance,
                "hg": hg,
                "orders": orders,
                "ch": ch,
                "schema": schema,
                "now": now,
                "order": order,
                "frame": pd.DataFrame([order]),
                "rows": [order],
                "source": [order, order],
                "corrected": lambda rows: rows,
                "save_for_later": print,
                "message": SimpleNamespace(rows=[order], position=ch.offset + 1_000),
            }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)
async def test_an_example_runs(
    example: Example, address: str, names: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = self_signed(tmp_path / "own")
    for name, path in {"ca.pem": own.cert, "me.pem": own.cert, "me.key": own.key}.items():
        Path(name).write_bytes(path.read_bytes())
    code = example.code.replace("localhost:7070", address).replace("file:///tmp/", tmp_path.as_uri() + "/")
    compiled = compile(code, example.where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coroutine = eval(compiled, names)
    if inspect.iscoroutine(coroutine):
        await coroutine


def test_every_public_class_of_the_sdk_has_examples() -> None:
    found = {example.where for example in EXAMPLES}
    assert found >= {"blocking.connect", "blocking.create_table", "blocking_table.channel", "blocking_channel.upsert"}
    assert found >= {f"blocking_channel.{name}" for name in ("delete", "write", "skip", "flush")}
    assert found >= {"errors.BatchRefusedError", "README.md"}
