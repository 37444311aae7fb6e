"""The audit log: what a line says, and that neither a flood nor a full disk does harm."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate_proto.api.v1 import ingest_pb2, maintenance_pb2, tables_pb2
from headgate_runtime.access.audit import NONE, REFUSALS_A_SECOND, STDERR, AuditEntry, JsonLines, NoAudit, audit_log
from headgate_runtime.access.call import details_of
from headgate_runtime.access.identity import Identity
from headgate_runtime.access.methods import method_access
from headgate_runtime.lifecycle import StartError
from support.hand_clock import HandClock

REFUSED = AuditEntry("/s/M", "UNAUTHENTICATED", refused=True)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def log(path: Path, clock: HandClock) -> Iterator[JsonLines]:
    made = JsonLines(str(path), clock)
    yield made
    made.close()


def test_a_line_says_when_who_from_where_what_and_how_it_ended(log: JsonLines, path: Path) -> None:
    ann = Identity("ann", credential="sha256:abc")
    log.write(AuditEntry("/p.S/M", "OK", ann, "ipv4:127.0.0.1:1", "flights", "ann/1", details={"comment": "x\ny"}))
    log.write(REFUSED)
    log.close()
    assert lines(path) == [
        {
            "time": "1970-01-01T00:01:40.000+00:00",
            "principal": "ann",
            "credential": "sha256:abc",
            "peer": "ipv4:127.0.0.1:1",
            "method": "p.S/M",
            "table": "flights",
            "channel": "ann/1",
            "outcome": "OK",
            "details": {"comment": "x\ny"},
        },
        {"time": "1970-01-01T00:01:40.000+00:00", "principal": None, "peer": "", "method": "s/M", "outcome": "UNAUTHENTICATED"},
    ]
    assert path.stat().st_mode & 0o077 == 0


def test_a_flood_of_refusals_leaves_a_count_and_hides_nothing_that_was_done(log: JsonLines, path: Path, clock: HandClock) -> None:
    for _ in range(1000):
        log.write(REFUSED)
    for number in range(100):
        log.write(AuditEntry("/s/M", "OK", table=str(number)))
    clock.now += 1
    log.write(REFUSED)
    log.close()
    found = lines(path)
    assert [line["table"] for line in found if line["outcome"] == "OK"] == [str(number) for number in range(100)]
    assert len(found) == REFUSALS_A_SECOND + 100 + 1
    assert [line["lines_left_out"] for line in found if "lines_left_out" in line] == [1000 - REFUSALS_A_SECOND]


def test_a_file_that_was_moved_away_is_made_anew(log: JsonLines, path: Path, tmp_path: Path) -> None:
    log.write(AuditEntry("/s/M", "OK", table="first"))
    log.close()
    again = JsonLines(str(path), HandClock())
    path.rename(tmp_path / "older")
    again.write(AuditEntry("/s/M", "OK", table="second"))
    again.close()
    assert [line["table"] for line in lines(path)] == ["second"]
    assert [line["table"] for line in lines(tmp_path / "older")] == ["first"]


def test_a_line_that_cannot_be_written_is_counted_in_the_next_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "audit"
    made = JsonLines(str(path), HandClock())
    path.unlink()
    folder.rmdir()
    made.write(AuditEntry("/s/M", "OK", table="lost"))
    made.flush()
    folder.mkdir()
    made.write(AuditEntry("/s/M", "OK", table="there"))
    made.close()
    assert [(line["table"], line["lines_left_out"]) for line in lines(path)] == [("there", 1)]


def test_a_call_that_ends_after_the_last_line_does_no_harm(log: JsonLines, path: Path) -> None:
    log.write(AuditEntry("/s/M", "OK", table="before"))
    log.close()
    log.write(AuditEntry("/s/M", "CANCELLED", table="after"))
    assert [line["table"] for line in lines(path)] == ["before"]


def test_where_it_goes_is_a_setting(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert isinstance(audit_log(NONE, HandClock()), NoAudit)
    to_stderr = audit_log(STDERR, HandClock())
    to_stderr.write(REFUSED)
    to_stderr.close()
    assert json.loads(capfd.readouterr().err)["outcome"] == "UNAUTHENTICATED"
    with pytest.raises(StartError, match=r"audit_log: .*none/x cannot be written: No such file"):
        audit_log(str(path / "none" / "x"), HandClock())
    assert not os.path.exists(path)


def test_details_hold_what_was_asked_and_neither_bytes_nor_long_texts() -> None:
    create = method_access("/headgate.api.v1.TableService/CreateTable")
    configure = method_access("/headgate.api.v1.MaintenanceService/Configure")
    savepoint = method_access("/headgate.api.v1.MaintenanceService/Savepoint")
    assert create is not None
    assert configure is not None
    assert savepoint is not None
    request = tables_pb2.CreateTableRequest(name="t", schema=b"secret", record_key=["id"], buckets=4, exist_ok=True)
    assert details_of(request, create) == {"record_key": "['id']", "buckets": 4, "exist_ok": True}
    changes = maintenance_pb2.ConfigureRequest(table="t", settings={"hoodie.keep.max.commits": "9"})
    assert "hoodie.keep.max.commits" in str(details_of(changes, configure))
    long = maintenance_pb2.SavepointRequest(table="t", comment="x" * 10_000)
    assert details_of(long, savepoint) == {"comment": "x" * 256}


def test_only_calls_that_change_something_are_logged_when_they_are_allowed() -> None:
    services = [module.DESCRIPTOR.services_by_name for module in (tables_pb2, ingest_pb2, maintenance_pb2)]
    paths = [
        f"/{service.full_name}/{method.name}" for found in services for service in found.values() for method in service.methods
    ]
    methods = [method_access(path) for path in paths]
    logged = {method.name for method in methods if method is not None and method.is_logged}
    reads = {"DescribeTable", "ListTables", "FindWriters", "Status"}
    assert logged == {path.rpartition("/")[2] for path in paths} - reads
