"""Files as people have them: each ends in the rows that another reader finds in it, or in an error that names what helps."""

import datetime as dt
import math
import uuid
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode
from support.readers import read_by_hudi_rs, without_meta
from support.real_files.case import RealFile, Rows
from support.real_files.csvs import CSVS
from support.real_files.jsons import JSONS
from support.real_files.typed_files import TYPED
from support.tiers import slow_but

pytestmark = pytest.mark.usefixtures("connected")

FILES: dict[str, RealFile] = {
    f"{kind}: {name}": case for kind, cases in (("CSV", CSVS), ("JSON", JSONS), ("types", TYPED)) for name, case in cases.items()
}
FAST = {"CSV: Excel, semicolons and a byte order mark", "JSON: Debezium's changes", "types: Spark's folder with days"}


def plain(value: Any) -> Any:
    """A value as all readers can have it."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return str(value) if isinstance(value, uuid.UUID) else value


def in_order(rows: Rows) -> list[Any]:
    return sorted((plain(row) for row in rows), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("name", slow_but(FAST, FILES))
def test_a_file_ends_in_its_rows_or_in_an_error_that_names_what_helps(name: str, headgate: Any, tmp_path: Path) -> None:
    case = FILES[name]
    path = tmp_path / case.name
    case.write(path)
    table = f"t{uuid.uuid5(uuid.NAMESPACE_URL, name).hex}"
    load = ("load", str(path), "--table", table, "--create", "--key", case.key, "--buckets", "1", *case.options)
    code, _, error = headgate(*load)
    if case.rows is None:
        assert code == ExitCode.FIX_CALL, error
        assert case.error in error["fix"]
        assert headgate("table", "describe", table)[0] == ExitCode.FIX_CALL, "nothing is left behind"
        return
    assert (code, error) == (ExitCode.OK, {})
    [described] = headgate("table", "describe", table)[1]
    found = without_meta(read_by_hudi_rs(Path(described["url"].removeprefix("file://"))))
    expected = case.rows(path)
    assert in_order(found.to_pylist()) == in_order(expected)


@pytest.mark.slow
def test_the_collection_is_large_enough_to_mean_something() -> None:
    assert len(FILES) >= 60
    assert sum(case.rows is not None for case in FILES.values()) >= 60
