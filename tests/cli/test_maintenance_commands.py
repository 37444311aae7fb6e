"""The commands that keep a table healthy, on a table without a cluster."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_tables import hudi
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.face.settings import SETTINGS
from support.tables import create, notes, rows

COMMITS = "hoodie.compact.inline.max.delta.commits"


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Three commits in one file group, none of them compacted, and nothing done by itself."""
    made = create(tmp_path, buckets=1)
    made.configure({"headgate.clean.min.age": "0", "hoodie.clean.commits.retained": "1"})
    for number in (1, 2, 3):
        made.upsert(rows(("a", number, f"a{number}"), (f"k{number}", 1, "k")))
    return made


def state(table: hudi.Table) -> tuple[list[Any], list[str]]:
    """What must not change when a command only plans."""
    reopened = hudi.open_table(table.url)
    return reopened.commits(), list(reopened.plans)


def test_compaction_is_planned_done_and_then_there_is_nothing_to_do(headgate: Any, table: hudi.Table) -> None:
    before = state(table)
    code, (planned,), _ = headgate("compact", table.url, "--plan-only")
    ((operation,),) = [plan["operations"] for plan in planned["plans"]]
    assert (code, planned["event"], operation["log_files"]) == (ExitCode.OK, "planned", 2)
    assert operation["base_bytes"] > 0
    assert state(table) == before
    code, said, _ = headgate("compact", table.url)
    assert (code, [line["event"] for line in said if line["event"] != "progress"]) == (ExitCode.OK, ["planned", "compacted"])
    assert (said[-1]["plans"][0]["finished"], said[-1]["plans"][0]["dropped"]) == (1, [])
    assert sum(line["rows"] for line in said if line["event"] == "progress") >= 4, "no progress was told"
    (group,) = hudi.open_table(table.url).file_groups()
    newest = max(group.slices(), key=lambda part: part.base_instant)
    assert (newest.base_instant, len(newest.logs)) == (said[-1]["plans"][0]["instant"], 0)
    assert notes(hudi.open_table(table.url)) == {"a": "a3", "k1": "k", "k2": "k", "k3": "k"}
    code, (planned,), _ = headgate("compact", table.url)
    assert (code, planned["plans"]) == (ExitCode.OK, [])


def test_old_slices_are_cleaned_when_newer_ones_have_replaced_them(headgate: Any, table: hudi.Table) -> None:
    table.compact()
    table.upsert(rows(("a", 9, "a9")))
    code, (planned,), _ = headgate("clean", table.url, "--plan-only")
    assert (code, planned["instant"]) == (ExitCode.OK, "")
    assert planned["files"] > 0
    code, (done,), _ = headgate("clean", table.url)
    assert (code, done["files"], done["bytes"]) == (ExitCode.OK, planned["files"], planned["bytes"])
    assert headgate("clean", table.url)[1][0]["files"] == 0
    assert notes(hudi.open_table(table.url))["a"] == "a9"


def test_the_timeline_is_trimmed_to_the_setting(headgate: Any, table: hudi.Table) -> None:
    code, said, _ = headgate("configure", table.url, "hoodie.keep.min.commits=2", "hoodie.keep.max.commits=3")
    assert (code, {each["key"]: each["value"] for each in said}) == (
        ExitCode.OK,
        {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"},
    )
    again = hudi.open_table(table.url)
    for number in (4, 5):
        again.upsert(rows(("a", number, f"a{number}")))
    code, (planned,), _ = headgate("archive", table.url, "--plan-only")
    assert code == ExitCode.OK
    assert planned["instants"]
    assert headgate("archive", table.url)[1] == [planned]
    assert notes(hudi.open_table(table.url))["a"] == "a5"


def test_channels_are_listed_with_their_offsets(headgate: Any, table: hudi.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "channels", table.url]) == ExitCode.OK
    assert capsys.readouterr().out == "no channels\n"
    at = 1_795_000_000_123
    table.win_offsets({"b": ChannelRecord(3, 12_345, "you", at), "a": ChannelRecord(1, 7, "me", at)})
    said = {"name": "a", "committed_offset": 7, "incarnation": 1, "principal": "me", "last_used_ms": at}
    other = {"name": "b", "committed_offset": 12_345, "incarnation": 3, "principal": "you", "last_used_ms": at}
    assert headgate("table", "channels", table.url)[:2] == (ExitCode.OK, [said, other])
    assert headgate("table", "channels", table.url, "--prefix", "b")[:2] == (ExitCode.OK, [other])
    assert run(["table", "channels", table.url]) == ExitCode.OK
    header, *rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert header == ["channel", "committed", "offset", "incarnation", "principal", "last", "used"]
    assert rows[-1] == ["b", "12,345", "3", "you", "2026-11-18", "11:06:40+00:00"]


def test_a_table_goes_back_to_a_savepoint_when_somebody_says_yes(headgate: Any, table: hudi.Table) -> None:
    code, (saved,), _ = headgate("savepoint", table.url, "--comment", "before")
    assert (code, saved["savepoints"]) == (ExitCode.OK, [saved["instant"]])
    handle = hudi.open_table(table.url)
    undone = handle.upsert(rows(("a", 9, "a9"), ("new", 1, "n"))).instant
    code, (planned,), _ = headgate("restore", table.url, saved["instant"], "--plan-only")
    assert (code, planned["undone"]) == (ExitCode.OK, [undone])
    code, said, error = headgate("restore", table.url, saved["instant"])
    assert (code, said, error["fix"]) == (ExitCode.USAGE, [], "Add --yes.")
    assert notes(hudi.open_table(table.url))["a"] == "a9"
    code, (done,), _ = headgate("restore", table.url, saved["instant"], "--yes")
    assert (code, done["undone"]) == (ExitCode.OK, [undone])
    assert notes(hudi.open_table(table.url)) == {"a": "a3", "k1": "k", "k2": "k", "k3": "k"}
    code, (left,), _ = headgate("savepoint", table.url, "--remove", saved["instant"])
    assert (code, left["savepoints"]) == (ExitCode.OK, [])
    code, _, error = headgate("restore", table.url, saved["instant"], "--yes")
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "OptionError")


@pytest.mark.parametrize(("answer", "code"), [("n\n", ExitCode.INTERRUPTED), ("", ExitCode.USAGE)], ids=["no", "nobody"])
def test_who_does_not_say_yes_changes_nothing(
    answer: str, code: ExitCode, table: hudi.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = table.savepoint()
    undone = table.upsert(rows(("a", 9, "a9"))).instant
    assert run(["restore", table.url, instant, "--plan-only"]) == ExitCode.OK
    assert "Alterations of columns and rescales since then are undone, too." in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert run(["restore", table.url, instant]) == code
    said = capsys.readouterr().err
    assert undone in said
    assert "Alterations of columns and rescales since then are undone, too." in said
    assert ("Add --yes." in said) == (code == ExitCode.USAGE)
    assert notes(hudi.open_table(table.url))["a"] == "a9"


def test_a_table_gets_another_number_of_buckets(headgate: Any, table: hudi.Table) -> None:
    before = state(table)
    code, (planned,), _ = headgate("table", "rescale", table.url, "--buckets", "4", "--plan-only")
    assert (code, planned["event"], planned["before"], planned["buckets"], planned["file_groups"]) == (0, "planned", 1, 4, 1)
    assert state(table) == before
    code, said, _ = headgate("table", "rescale", table.url, "--buckets", "4")
    (done,) = [line for line in said if line["event"] == "rescaled"]
    assert (code, done["rows"], done["files"]) == (ExitCode.OK, 4, len(hudi.open_table(table.url).file_groups()))
    last = [line for line in said if line["event"] == "progress"][-1]
    assert (last["rows"], last["bytes_done"]) == (4, planned["bytes"])
    assert notes(hudi.open_table(table.url)) == {"a": "a3", "k1": "k", "k2": "k", "k3": "k"}
    code, said, _ = headgate("table", "rescale", table.url, "--buckets", "4")
    assert (code, [line["event"] for line in said]) == (ExitCode.OK, ["planned"])


def test_a_table_of_a_cluster_is_not_rescaled_beside_its_owner(headgate: Any, table: hudi.Table) -> None:
    for wrong in (["--take-over"], ["--longest-pause", "soon"]):
        code, said, error = headgate("table", "rescale", "flights", "--buckets", "4", *wrong)
        assert (code, said) == (ExitCode.USAGE, [])
        assert wrong[0] in error["message"]
    with hudi.open_table(table.url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
        cluster.own()
        code, said, error = headgate("table", "rescale", table.url, "--buckets", "4")
    assert (code, [line["event"] for line in said]) == (ExitCode.OPERATOR, ["planned"])
    assert "--take-over" in error["fix"]
    assert headgate("table", "rescale", table.url, "--buckets", "4", "--take-over")[0] == ExitCode.OK


def test_a_table_at_an_address_is_upgraded_and_downgraded(headgate: Any, table: hudi.Table) -> None:
    for command, before, version in (("upgrade", 8, 9), ("upgrade", 9, 9), ("downgrade", 9, 8)):
        code, (said,), _ = headgate("table", command, table.url)
        assert (code, said) == (ExitCode.OK, {"table": table.url, "before": before, "table_version": version})
        assert hudi.open_table(table.url).format_version == version
    assert notes(hudi.open_table(table.url))["a"] == "a3"


def test_a_table_at_an_address_gets_a_column_and_a_wider_type(headgate: Any, table: hudi.Table) -> None:
    change = ["--add", "gate=string", "--add", "fares=double[]", "--nullable", "note"]
    planned = {"table": table.url, "plan_only": True, "added": ["gate: string", "fares: list<element: double>"]}
    planned |= {"widened": [], "nullable": []}
    assert headgate("table", "alter", table.url, *change, "--plan-only")[1] == [planned]
    assert "gate" not in hudi.open_table(table.url).schema.names
    assert headgate("table", "alter", table.url, *change)[1] == [planned | {"plan_only": False}]
    assert hudi.open_table(table.url).schema.names[-2:] == ["gate", "fares"]
    assert headgate("table", "alter", table.url, *change)[1] == [planned | {"plan_only": False, "added": []}]
    code, _, error = headgate("table", "alter", table.url, "--widen", "gate=int64")
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "SchemaError")


@pytest.mark.parametrize("change", [[], ["--add", "gate"], ["--add", "gate=nothing"], ["--add", "g=string", "--add", "g=int"]])
def test_an_alteration_that_is_not_spelled_right_is_a_wrong_command_line(
    headgate: Any, table: hudi.Table, change: list[str]
) -> None:
    assert headgate("table", "alter", table.url, *change)[0] == ExitCode.USAGE


def test_settings_are_explained_and_a_wrong_one_is_the_callers_to_fix(headgate: Any, table: hudi.Table) -> None:
    code, said, _ = headgate("configure", table.url)
    assert (code, [each["key"] for each in said]) == (ExitCode.OK, [setting.key for setting in SETTINGS.values()])
    assert all(each["about"] for each in said)
    assert headgate("configure", table.url, f"{COMMITS}=7")[1][0]["value"] == "7"
    assert hudi.open_table(table.url).settings.compaction_commits == 7
    assert headgate("configure", table.url, "--unset", COMMITS)[1][0]["value"] == said[1]["default"]
    code, _, error = headgate("configure", table.url, f"{COMMITS}=many")
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "OptionError")


@pytest.mark.parametrize(
    "arguments",
    [
        ["configure", "TABLE", "novalue"],
        ["configure", "TABLE", f"{COMMITS}=1", "--unset", COMMITS],
        ["savepoint", "TABLE", "--list", "--remove", "1"],
        ["restore", "TABLE"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_changes_nothing(arguments: list[str], headgate: Any, table: hudi.Table) -> None:
    assert headgate(*(table.url if word == "TABLE" else word for word in arguments))[0] == ExitCode.USAGE
    assert hudi.open_table(table.url).savepoints == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact"],
        ["compact", "--plan-only"],
        ["clean"],
        ["archive"],
        ["savepoint"],
        ["restore", "1", "--yes"],
        ["configure", "a=1"],
    ],
    ids=" ".join,
)
def test_a_table_that_a_cluster_holds_is_asked_for_by_name(arguments: list[str], headgate: Any, table: hudi.Table) -> None:
    with hudi.open_table(table.url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
        cluster.own()
        code, _, error = headgate(arguments[0], table.url, *arguments[1:])
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "TableOwnedError")
    assert "host:7070" in error["message"]
    assert f"its name ({table.name})" in error["fix"]


@pytest.mark.parametrize("also", [["--buckets", "2"], ["--roll-back"], ["--remove-metadata-table"]], ids=" ".join)
def test_times_in_the_future_are_accepted_alone(headgate: Any, table: hudi.Table, also: list[str]) -> None:
    code, said, error = headgate("table", "adopt", table.url, "--future-times", *also)
    assert (code, said) == (ExitCode.USAGE, [])
    assert also[0] in error["message"]
    assert "alone" in error["fix"]
    assert headgate("table", "adopt", table.url, "--future-times") == (ExitCode.OK, [{"goes_on_from": ""}], {})


def test_an_error_about_a_metadata_table_names_the_option_that_drops_it(headgate: Any, table: hudi.Table, tmp_path: Path) -> None:
    properties = tmp_path / "table/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.metadata.partitions=files\n")
    code, _, error = headgate("table", "adopt", table.url)
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "MetadataTableError")
    assert "headgate table adopt TABLE --remove-metadata-table" in error["fix"]
    assert headgate("table", "adopt", table.url, "--remove-metadata-table")[0] == ExitCode.OK
    assert "metadata.partitions" not in properties.read_text()
    hudi.open_table(table.url).upsert(rows(("z", 1, "z")))


def test_a_slice_is_set_aside_listed_and_readmitted(headgate: Any, table: hudi.Table) -> None:
    (group,) = table.file_groups()
    name = f"{group.partition}/{group.file_id}"
    assert headgate("table", "slice", "list", table.url) == (ExitCode.OK, [], {})
    code, (told,), _ = headgate("table", "slice", "set-aside", table.url, name, "--comment", "its disk is moved")
    assert (code, told["name"], told["aside"], told["why"]) == (ExitCode.OK, name, True, "its disk is moved")
    logs = group.slices()[-1].logs
    assert logs
    assert (told["log_files"], told["log_bytes"]) == (len(logs), sum(log.size for log in logs))
    assert list(told) == [field.name for field in api.StuckSlice.DESCRIPTOR.fields], "a cluster answers the same record"
    code, (planned,), _ = headgate("compact", table.url, "--plan-only")
    assert (code, planned["plans"]) == (ExitCode.OK, []), "what is set aside is not compacted"
    assert headgate("table", "slice", "list", table.url)[1] == [told]
    base = Path(table.url.removeprefix("file://"), group.slices()[-1].path(str(group.slices()[-1].base)))
    second = shutil.copy(base, base.with_name(base.name.replace("_0-0-0_", "_0-7-0_")))
    code, listed, _ = headgate("table", "slice", "list", table.url)
    assert (code, listed) == (ExitCode.OK, [{**told, "log_files": 0, "log_bytes": 0}]), "nobody can say which base file counts"
    Path(second).unlink()
    assert headgate("table", "slice", "readmit", table.url, name) == (ExitCode.OK, [], {})
    code, _, error = headgate("table", "slice", "set-aside", table.url, "p/nothing")
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "OptionError")
    assert "headgate table files" in error["fix"]
