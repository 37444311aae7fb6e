"""Production has no function, method, class or constant that only tests use: such code is tested and does nothing."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PRODUCTION = [
    path
    for folder in ("compactor", "coordinator", "lib", "proto", "writer")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "_pb2" not in path.name and ".venv" not in path.parts
]
CALLED_FROM_OUTSIDE = {
    "addInPlace": "Spark's accumulators",
    "emit": "logging",
    "format_commands": "click",
    "getDefaultReadLimit": "Spark's data sources",
    "get_command": "click",
    "initialOffset": "Spark's data sources",
    "intercept_service": "grpc.aio",
    "invoke": "click",
    "latestOffset": "Spark's data sources",
    "on_broken_pipe": "rich",
    "prepareForTriggerAvailableNow": "Spark's data sources",
    "pushFilters": "Spark's data sources",
    "reportLatestOffset": "Spark's data sources",
    "seekable": "pyarrow",
    "streamReader": "Spark's data sources",
    "streamWriter": "Spark's data sources",
    "to_duckdb": "programs that read tables",
    "to_polars": "programs that read tables",
    "to_table": "programs that read tables",
    "undrop_table": "programs of the SDK",
    "unreadable_tables": "programs of the SDK",
    "wait_for_state_change": "grpc.aio",
}
"""Who calls what no code of ours calls."""


class Defined(NamedTuple):
    where: str
    name: str
    node: ast.AST


def definitions(path: Path, tree: ast.Module) -> Iterator[Defined]:
    """At the top of a module and in its classes. What has a decorator may be called by it, unless that is one of Python's own."""
    for node in (*tree.body, *(inner for each in tree.body if isinstance(each, ast.ClassDef) for inner in each.body)):
        where = f"{path.relative_to(ROOT)}:{node.lineno}"
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                own = {"property", "classmethod", "staticmethod", "abstractmethod", "dataclass", "contextmanager", "cache"}
                names = {name.split(".")[-1] for each in node.decorator_list for name in [ast.unparse(each).partition("(")[0]]}
                if names <= own | {"asynccontextmanager"} and not node.name.startswith("__"):
                    yield Defined(where, node.name, node)
            case ast.Assign(targets=[ast.Name(id=name)]) if node in tree.body and not name.startswith("__"):
                yield Defined(where, name, node)
            case _:
                pass


def names_in(tree: ast.AST) -> Counter[str]:
    """Each name as often as it is read. Short texts count, too, as annotations and as names of what is imported later."""
    found: Counter[str] = Counter()
    documentation = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) | ast.keyword(arg=str(name)):
                found[name] += 1
            case ast.Constant(value=str(text)) if len(text) < 200 and id(node) not in documentation:
                found.update(re.findall(r"\w+", text))
            case _:
                pass
    return found


def test_nothing_of_production_is_there_for_tests_alone() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PRODUCTION}
    assert len(trees) > 300
    used = sum((names_in(tree) for tree in trees.values()), Counter())
    defined = [each for path, tree in trees.items() for each in definitions(path, tree)]
    unused = [each for each in defined if used[each.name] <= names_in(each.node)[each.name]]
    assert not [f"{each.where} {each.name}" for each in unused if each.name not in CALLED_FROM_OUTSIDE]
    assert {each.name for each in unused} == set(CALLED_FROM_OUTSIDE)
