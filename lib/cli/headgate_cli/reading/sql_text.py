"""Whether a text for `--sql` reads the rows of the file alone, and gives the same rows each time: DuckDB parses it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from headgate_cli.reading.source import refused

if TYPE_CHECKING:
    import duckdb

INPUT = "input"
_FORM = "Write one SELECT of the file's rows, such as --sql 'select id, price * 2 as price from input'."
_REPEAT = "A load that goes on after a break counts the rows again, so the same file has to give the same rows in the same order."
_TABLE_FUNCTIONS = ("range", "generate_series", "unnest")
_CLOCKS = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
"""Functions without brackets, which DuckDB's parser takes for columns."""
_REPEATABLE = ("error",)
"""Volatile to DuckDB, so that it is not left out; it gives no value."""


def check_text(connection: duckdb.DuckDBPyConnection, text: str, columns: Collection[str]) -> None:
    """Raises CommandError unless ``text`` is one SELECT from ``input``, whose columns are ``columns``, and repeatable.

    DuckDB's catalogue of functions tells which give another value each time; samples are refused, too.
    """
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise refused(f"--sql: {str(error).partition(chr(10))[0]}", _FORM) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise refused("--sql is not one SELECT", _FORM)
    nodes = list(_nodes(_parsed(connection, text)))
    _check_places(nodes)
    _check_repeatable(connection, nodes, {column.lower() for column in columns}, ())


def _parsed(connection: duckdb.DuckDBPyConnection, text: str) -> object:
    [found] = connection.execute("SELECT json_serialize_sql($1)", [text]).fetchone() or ("{}",)
    tree = json.loads(found)
    if tree.get("error"):
        raise refused(f"--sql: {tree['error_message']}", _FORM)
    return tree


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    below: Iterator[object] = iter(())
    if isinstance(tree, dict):
        yield tree
        below = iter(tree.values())
    elif isinstance(tree, list):
        below = iter(tree)
    for each in below:
        yield from _nodes(each)


def _check_places(nodes: Collection[dict[str, object]]) -> None:
    tables = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    own = {INPUT} | {str(node["key"]).lower() for node in nodes if "key" in node and "value" in node}
    for table in tables:
        name = str(table["table_name"])
        if name.lower() not in own or table["schema_name"] or table["catalog_name"]:
            raise refused(f"--sql reads {name!r}, and the file's rows are {INPUT!r}", _FORM)
    for node in nodes:
        called = node.get("function") if node.get("type") == "TABLE_FUNCTION" else None
        if isinstance(called, dict) and called["function_name"] not in _TABLE_FUNCTIONS:
            raise refused(f"--sql reads {called['function_name']}(…), and the file's rows are {INPUT!r}", _FORM)
    if not any(str(table["table_name"]).lower() == INPUT for table in tables):
        raise refused(f"--sql does not read {INPUT!r}, the file's rows", _FORM)


def _check_repeatable(
    connection: duckdb.DuckDBPyConnection, nodes: Collection[dict[str, object]], columns: Collection[str], within: tuple[str, ...]
) -> None:
    """``within``: macros that these nodes are the definition of."""
    varying = _varying(connection)
    for node in nodes:
        if node.get("sample"):
            raise refused("--sql takes a sample, which is another one each time", f"{_REPEAT} Choose rows by their values.")
        names = node.get("column_names") if node.get("type") == "COLUMN_REF" else None
        if isinstance(names, list) and len(names) == 1 and str(names[0]).lower() in _CLOCKS and names[0].lower() not in columns:
            raise _other_each_time((*within, str(names[0])))
        name = str(node["function_name"]).lower() if "function_name" in node else ""
        if name in varying:
            raise _other_each_time((*within, f"{name}()"))
        for definition in _definitions(connection, name) if name and name not in within else ():
            _check_repeatable(connection, list(_nodes(_parsed(connection, definition))), columns, (*within, name))


def _varying(connection: duckdb.DuckDBPyConnection) -> set[str]:
    rows = connection.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY')"
    ).fetchall()
    return {str(name) for (name,) in rows} - set(_REPEATABLE)


def _definitions(connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[str]:
    """What macros of this name stand for, as queries."""
    rows = connection.execute(
        "SELECT function_type, macro_definition FROM duckdb_functions() WHERE lower(function_name) = $1 "
        "AND macro_definition IS NOT NULL",
        [name],
    ).fetchall()
    for kind, definition in rows:
        yield definition if kind == "table_macro" else f"SELECT {definition}"


def _other_each_time(names: tuple[str, ...]) -> Exception:
    called = ", called by ".join(reversed(names))
    return refused(f"--sql: {called} gives another value each time", f"{_REPEAT} Write the value itself into the SQL.")
