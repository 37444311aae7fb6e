"""What `headgate status` shows people, and what it advises."""

from typing import Any

import pytest

from headgate_cli.output import Output
from headgate_cli.status.advice import advice
from headgate_cli.status.figures import span
from headgate_cli.status.showing import show

NOW_MS = 1_800_000_000_000


def a_table(name: str = "t", **fields: Any) -> dict[str, Any]:
    """One that a coordinator owns, and in which nothing happens."""
    zeros = ("epoch", "generation", "checkpoint", "channels", "uncommitted_bytes", "checkpoint_files", "checkpoint_bytes")
    table: dict[str, Any] = dict.fromkeys((*zeros, "rows_per_second", "waiting_seconds", "lag", "last_commit_ms"), 0)
    table |= {"name": name, "state": "owned", "owner": "one", "last_instant": "", "checkpoint_seconds": 0.0, "alarms": []}
    return table | {"operations": [], "operations_queued": 0} | fields


def a_cluster(*tables: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """With a process of each kind."""
    return {
        "redis_reachable": True,
        "coordinators": [{"name": "one", "address": "c:7070", "answers": True}],
        "writers": [{"process": "w", "address": "w:1", "leaving": False, "uncommitted_bytes": 2048}],
        "compactors": [{"process": "k", "host": "h", "leaving": False, "free": 1, "running": 0}],
        "tables": list(tables),
        "alarms": [],
    } | fields


def test_the_last_minute_of_each_table_is_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    busy = a_table("busy", rows_per_second=12_345.6, waiting_seconds=1.24, lag=700, channels=3, last_commit_ms=NOW_MS - 2_000)
    gone = a_table("gone", state="elsewhere", owner="two")
    show(Output(json=False), a_cluster(busy, a_table("quiet", last_commit_ms=NOW_MS - 7_200_000), gone), NOW_MS)
    advised, _, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert " ".join(advised).startswith("gone: its owner two did not tell of it, so it may take no rows.")
    assert lines[0][:6] == ["table", "state", "rows/s", "freshness", "lag", "channels"]
    assert lines[1][:9] == ["busy", "owned", "12,346", "1.2", "s", "700", "3", "2", "s"]
    assert lines[2][:8] == ["quiet", "owned", "0", "idle", "0", "0", "120", "min"] or lines[2][6:8] == ["2", "h"]
    assert lines[3][:5] == ["gone", "elsewhere", "-", "-", "-"]


def test_alarms_come_first_and_processes_last(capsys: pytest.CaptureFixture[str]) -> None:
    found = a_cluster(a_table(alarms=["no writer is attached"]), alarms=["one: the store cannot be listed"])
    show(Output(json=False), found, NOW_MS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["one: the store cannot be listed", "t: no writer is attached", ""]
    assert [line.split()[0] for line in lines[3:] if line] == ["table", "t", "name", "one", "address", "w:1", "host", "h"]


def test_each_running_operation_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    running = {"partition": "2026", "file_id": "g", "compactor": "c", "host": "h", "attempt": 2, "rows_done": 7}
    running |= {"bytes_done": 512, "of_bytes": 2048, "seconds": 1.26}
    show(Output(json=False), a_cluster(a_table(operations=[running], operations_queued=3)), NOW_MS)
    said = capsys.readouterr().out
    assert "1 + 3 wait" in said
    assert [line.split() for line in said.splitlines() if line.startswith("t 2026")] == [
        ["t", "2026", "g", "h", "2", "512", "B", "of", "2.0", "KiB", "25", "7", "1.300"]
    ]


def test_one_table_is_shown_with_its_channels_and_without_processes(capsys: pytest.CaptureFixture[str]) -> None:
    channels = [
        {"name": f"c{number}", "committed_offset": 100, "lag": lag, "last_used_ms": NOW_MS - 5_000, "principal": "ann"}
        for number, lag in enumerate([7] + [0] * 24)
    ]
    show(Output(json=False), a_cluster(a_table(channel_list=channels, lag=7, waiting_seconds=0.3)), NOW_MS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["freshness", "0.3", "s"] in lines
    assert ["c0", "107", "100", "7", "5", "s", "ago", "ann"] in lines
    assert lines[-1][:3] == ["5", "more", "channels:"]
    assert not [line for line in lines if line[:1] == ["address"]]


def test_who_may_not_list_channels_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    show(Output(json=False), a_cluster(a_table(channel_list=None)), NOW_MS)
    assert "The right `operate` is needed to see its channels." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fields", "what", "help_"),
    [
        ({"writers": []}, "the cluster takes no rows", "headgate writer --coordinator c:7070"),
        ({"compactors": []}, "reads get slower", "headgate compactor --coordinator c:7070"),
        ({"redis_reachable": False}, "Redis does not answer", "Start Redis"),
        (
            {"coordinators": [{"name": "one", "address": "c:7070", "answers": False}]},
            "coordinator one at c:7070 does not answer",
            "Look into its log",
        ),
    ],
)
def test_what_is_wrong_with_processes_comes_with_what_helps(fields: dict[str, Any], what: str, help_: str) -> None:
    (said,) = advice(a_cluster(a_table(), **fields))
    assert what in said
    assert help_ in said


def test_rows_that_wait_for_long_and_tables_without_an_owner_are_told_unless_an_alarm_is() -> None:
    assert advice(a_cluster(a_table(waiting_seconds=59))) == []
    (late,) = advice(a_cluster(a_table(waiting_seconds=75)))
    assert late.startswith("t: rows wait for 75 s.")
    assert late.endswith("look into the log of one.")
    assert advice(a_cluster(a_table(waiting_seconds=75, alarms=["no space is left"]))) == []
    (unowned,) = advice(a_cluster(a_table(state="unowned", owner="")))
    assert "no coordinator owns it just now" in unowned


def test_spans_are_in_the_unit_that_people_use() -> None:
    spans = {0: "0 s", 1_499: "1 s", 99_000: "99 s", 120_000: "2 min", 7_200_000: "2 h", 86_400_000 * 3: "3 d"}
    assert {ms: span(NOW_MS, NOW_MS - ms) for ms in spans} == spans
    assert span(NOW_MS, NOW_MS + 5_000) == "0 s", "another machine's clock"
