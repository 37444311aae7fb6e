"""`headgate table expire`: what it shows, and what it leaves to the cluster."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_tables import hudi
from support.readers import read_by_hudi_rs, read_by_us

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string())])


@pytest.fixture
def url(tmp_path: Path) -> str:
    days = ["2020-01-01", "2020-01-02", "9998-01-01", "none"]
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="day", buckets=1) as table:
        table.upsert(pa.Table.from_pylist([{"id": day, "day": day} for day in days], SCHEMA))
    return str(tmp_path / "t")


def ids(url: str) -> list[str]:
    ours, theirs = (sorted(row["id"] for row in read(Path(url)).to_pylist()) for read in (read_by_us, read_by_hudi_rs))
    assert ours == theirs
    return ours


def test_a_look_shows_what_would_go_and_since_when_and_removes_nothing(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert run(["table", "expire", url, "--dry-run", "--ttl", "1d", "--by", "day"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "2020-01-01 2020-01-03 00:00:00" in " ".join(out.split())
    assert "2 partitions would be removed" in out
    assert "1 have a value that is no date" in out
    assert "The next one expires 9998-01-03 00:00:00" in out
    assert len(ids(url)) == 4


def test_it_removes_what_the_settings_say_and_says_so_as_json(headgate: Any, url: str) -> None:
    assert headgate("configure", url, "headgate.ttl=7d", "headgate.ttl.by=day")[0] == ExitCode.OK
    code, [said], _ = headgate("table", "expire", url)
    assert [each["partition"] for each in said["partitions"]] == ["2020-01-01", "2020-01-02"]
    assert (code, bool(said["instant"]), said["replaced"], said["left"]) == (ExitCode.OK, True, 2, 0)
    assert ids(url) == ["9998-01-01", "none"]


def test_a_table_without_the_setting_and_a_name_without_a_look_are_refused(headgate: Any, url: str) -> None:
    code, _, error = headgate("table", "expire", url)
    assert (code, "headgate.ttl=30d" in error["fix"]) == (ExitCode.FIX_CALL, True)
    code, _, error = headgate("table", "expire", "flights")
    assert (code, "--dry-run" in error["fix"]) == (ExitCode.USAGE, True)
