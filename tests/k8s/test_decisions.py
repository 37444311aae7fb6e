"""What the acceptance decides from what it sees, without a cluster."""

import sys
from pathlib import Path
from typing import Any

import pytest

from k8s.events import EVENTS, Need
from k8s.judging import Judgement
from k8s.manifests import PROGRAM, producer, program
from k8s.misconfigured import failures, merged
from k8s.producer import Stream
from k8s.release import is_rolled_out
from k8s.report import Line, Report
from k8s.settings import Settings, read_settings, run_command
from k8s.shares import OVER, ROUNDS, ratio_after

WELL = Judgement(rows=1, calls=1, failures=(), slowest=0.1, anomalies={}, details="")
LINE = Line("event", goal=2.0, gap=1.0, seconds=3.0)


def report(**other: Any) -> Report:
    return Report(**{"install": 10.0, "lines": [LINE], "judgement": WELL, **other})


def test_a_run_is_well_when_nothing_is_amiss() -> None:
    assert report(left_out=[("event", "two nodes")]).is_well
    assert "LEFT OUT: event: it needs two nodes" in report(left_out=[("event", "two nodes")]).text()


@pytest.mark.parametrize(
    "amiss",
    [
        {"install": 61.0},
        {"install": 0.0},
        {"lines": [LINE, Line("event", goal=2.0, gap=2.1, seconds=3.0)]},
        {"lines": [LINE, Line("event", goal=2.0, gap=1.0, seconds=3.0, error="not ready")]},
        {"findings": ["one"]},
        {"judgement": None},
        {"judgement": Judgement(1, 1, ["one: UnavailableError"], 0.1, {}, "")},
        {"judgement": Judgement(1, 1, [], 0.1, {"lost": 1}, "")},
    ],
    ids=str,
)
def test_a_run_is_not_well_and_the_table_says_so(amiss: dict[str, Any]) -> None:
    found = report(**amiss)
    assert not found.is_well
    assert "NOT WELL" in found.text()


def workload(**status: Any) -> dict[str, Any]:
    counts = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 7}
    return {"metadata": {"generation": 7}, "spec": {"replicas": 2}, "status": counts | status}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, True),
        ({"observedGeneration": 6}, False),
        ({"replicas": 3}, False),
        ({"readyReplicas": 1}, False),
        ({"updatedReplicas": 1}, False),
        ({"currentRevision": "a", "updateRevision": "b"}, False),
        ({"currentRevision": "b", "updateRevision": "b"}, True),
    ],
    ids=str,
)
def test_a_workload_is_rolled_out_when_all_pods_are_new_and_ready(status: dict[str, Any], expected: bool) -> None:
    assert is_rolled_out(workload(**status)) is expected


def test_writers_share_evenly_from_three_checkpoints_after_the_first_one_of_all() -> None:
    two, uneven, even = {"0": 9, "1": 1}, {"0": 9, "1": 1, "2": 1}, {"0": 4, "1": 3, "2": 3}
    checkpoints = [two, two, *[uneven] * ROUNDS, *[even] * OVER, uneven]
    assert ratio_after(checkpoints, 3) == pytest.approx(4 / 3)
    with pytest.raises(ValueError, match="7 come 3 after"):
        ratio_after(checkpoints[: -OVER + 6], 3)
    assert ratio_after([even, *[two] * (ROUNDS + OVER)], 3) == float("inf")


def test_what_a_producer_imports_is_in_its_program() -> None:
    needed = {name for path in PROGRAM for name in _imports(Path(__file__).parent.parent / path)}
    assert {f"{name.replace('.', '/')}.py" for name in needed} <= set(PROGRAM)
    assert {path.replace("/", ".") for path in PROGRAM} == set(program()["data"])


def _imports(path: Path) -> set[str]:
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("from ")]
    return {words[1] for words in lines if words[1].split(".")[0] in ("k8s", "support")}


def test_a_producer_is_pinned_and_has_its_settings() -> None:
    made = producer("one", Stream("t", "hg:7070", "s3://b/notes", 10.0, 5, 4, 2), "image:1", "node1", "store", "client")
    pod = made["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "node1"}
    env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert env["PRODUCER_NAME"] == "one"
    assert env["PRODUCER_RATE"] == "10.0"
    assert env["PRODUCER_CA"] == "/credentials/ca.crt"


def test_settings_come_from_the_environment(tmp_path: Path) -> None:
    given = {"HEADGATE_K8S_HOST": "10.0.0.1", "HEADGATE_K8S_NODE_CRASH": "stop {number}", "HEADGATE_VERSITYGW": "versitygw"}
    given["HEADGATE_S3RVER"] = "s3rver.js"
    found = read_settings(given)
    assert (found.host, found.helm, found.can_fault_nodes) == ("10.0.0.1", "helm", False)
    with pytest.raises(SystemExit, match="HEADGATE_K8S_HOST"):
        read_settings({})


def test_a_fault_of_a_node_is_a_command_with_its_name_and_number(tmp_path: Path) -> None:
    file = tmp_path / "said"
    command = f"{sys.executable} -c \"import sys; open('{file}', 'w').write(' '.join(sys.argv[1:]))\" {{node}} {{number}}"
    Settings("10.0.0.1", node={"cut": command}).fault_node("cut", "node12")
    assert file.read_text() == "node12 12"
    with pytest.raises(SystemExit, match="ended with 3"):
        run_command(f"{sys.executable} -c 'raise SystemExit(3)'")


def test_each_need_is_some_events() -> None:
    assert {event.need for event in EVENTS} == set(Need)
    assert len({event.name for event in EVENTS}) == len(EVENTS)


def test_values_come_on_top_of_others_name_by_name() -> None:
    below = {"writer": {"cpu": "1", "settings": {"a": "1"}}, "store": "s3://b"}
    above = {"writer": {"settings": {"b": "2"}}, "store": "s3://c", "redis": {"bundled": False}}
    writer = {"cpu": "1", "settings": {"a": "1", "b": "2"}}
    assert merged(below, above) == {"writer": writer, "store": "s3://c", "redis": {"bundled": False}}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], 0),
        ([{"state": {"running": {}}}], 0),
        ([{"state": {"terminated": {"exitCode": 1}}}], 0),
        ([{"state": {"terminated": {"exitCode": 0, "message": "done"}}}], 0),
        ([{"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 1, "message": "no Redis"}}}], 1),
    ],
    ids=str,
)
def test_a_container_that_failed_without_a_word_does_not_count(statuses: list[Any], expected: int) -> None:
    assert failures({"status": {"containerStatuses": statuses}}) == expected
