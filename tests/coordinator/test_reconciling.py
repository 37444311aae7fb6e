"""What ingest sides handed over against what bucket sides received and wrote (rule RO10): what is found, and who is at fault."""

from collections.abc import Mapping, Sequence

import pytest

from headgate_coordinator.core.events import (
    BarrierPassed,
    Broken,
    CheckpointAsked,
    FilesRefused,
    Flushed,
    InstantAsked,
    LoadReported,
    Tick,
    WriterLeaving,
    WriterLost,
)
from headgate_coordinator.core.instructions import Alarm, Attach, Barrier, CommitCheckpoint, Detach, DropCheckpoint, Grant
from headgate_coordinator.core.reconciling import (
    Disagreement,
    Finding,
    ForeignOffset,
    Imbalance,
    reconcile,
    writers_at_fault,
)
from headgate_coordinator.core.tally import Tally
from support.one_table import OneTable, joined, only, orders

MEMBERS = ("a", "b", "c", "d")


def passed(process: str, handed: Mapping[str, Tally]) -> BarrierPassed:
    return BarrierPassed(process, 1, 1, {}, 0, handed)


def flushed(process: str, received: Mapping[str, Tally], written: int, beaten: int = 0) -> Flushed:
    return Flushed(process, 1, 1, (), {}, received, written, beaten)


def of_two(handed: Mapping[str, Tally], received: Mapping[str, Tally], written: int, beaten: int = 0) -> list[Finding]:
    """``a`` took rows from clients, ``b`` has their key groups."""
    return reconcile(
        {"a": passed("a", handed), "b": passed("b", {})},
        {"a": flushed("a", {}, 0), "b": flushed("b", received, written, beaten)},
    )


def test_ro10_rows_that_were_written_or_beaten_add_up() -> None:
    assert of_two({"b": Tally(9, 5)}, {"a": Tally(9, 5)}, written=7, beaten=2) == []
    assert of_two({"b": Tally(0, 0)}, {}, written=0) == [], "a pair without rows may be left out"


@pytest.mark.parametrize("reported", [Tally(8, 5), Tally(10, 5), Tally(9, 6), Tally(0, 5)], ids=str)
def test_ro10_a_pair_agrees_on_rows_and_checksum(reported: Tally) -> None:
    assert of_two({"b": Tally(9, 5)}, {"a": reported}, written=reported.rows) == [Disagreement("a", "b", Tally(9, 5), reported)]


def test_ro10_an_empty_report_disagrees_with_who_handed_rows_over_and_rows_from_nowhere_with_who_did_not() -> None:
    assert of_two({"b": Tally(249, 5)}, {}, written=0) == [Disagreement("a", "b", Tally(249, 5), Tally())]
    assert of_two({}, {"a": Tally(3, 5)}, written=3) == [Disagreement("a", "b", Tally(), Tally(3, 5))]


def test_ro10_rows_to_or_from_a_process_that_is_no_member_do_not_add_up() -> None:
    assert of_two({"x": Tally(3, 5)}, {}, written=0) == [Disagreement("a", "x", Tally(3, 5), Tally())]
    assert of_two({}, {"x": Tally(3, 5)}, written=3) == [Disagreement("x", "b", Tally(), Tally(3, 5))]


@pytest.mark.parametrize(("written", "beaten"), [(8, 0), (10, 0), (7, 1), (0, 0), (0, 9)])
def test_ro10_what_came_is_written_or_beaten_and_not_all_of_it_is_beaten(written: int, beaten: int) -> None:
    assert of_two({"b": Tally(9, 5)}, {"a": Tally(9, 5)}, written, beaten) == [Imbalance("b", 9, written, beaten)]


def test_ro10_files_without_rows_that_came_do_not_add_up() -> None:
    assert of_two({}, {}, written=4) == [Imbalance("b", 0, 4, 0)]


def pair(ingest: str, bucket: str) -> Disagreement:
    return Disagreement(ingest, bucket, Tally(1, 1), Tally())


@pytest.mark.parametrize(
    ("findings", "agreed", "at_fault"),
    [
        ([Imbalance("b", 3, 2, 0)], {}, ["b"]),
        ([ForeignOffset("b", "orders")], {}, ["b"]),
        ([pair("b", "b")], {}, ["b"]),
        ([pair("a", "gone"), pair("gone", "b")], {}, ["a", "b"]),
        ([pair("a", "b"), Imbalance("b", 3, 2, 0)], {"a": 0, "b": 9}, ["b"]),
        ([pair("a", "b")], {}, ["b"]),
        ([pair("a", "b")], {"b": 3, "a": 2}, ["a"]),
        ([pair("a", "b"), pair("a", "c")], {"a": 9}, ["a"]),
        ([pair("a", "c"), pair("b", "c"), pair("c", "a")], {"c": 9}, ["c"]),
        ([pair("a", "b"), pair("c", "d")], {}, ["d", "b"]),
        ([pair("a", "b"), pair("a", "c"), pair("a", "d"), pair("b", "d")], {}, ["a", "d"]),
        ([], {}, []),
    ],
    ids=[
        "writes other rows than it received",
        "takes an offset of others",
        "its own two sides disagree",
        "names a process that is no member",
        "who contradicts itself explains the pair",
        "of two the bucket side",
        "of two the one with fewer checkpoints that added up",
        "the ingest side with most others",
        "the bucket side with most others",
        "two that have nothing to do with each other",
        "the fewest that explain it",
        "nobody",
    ],
)
def test_ro10_the_fewest_writers_that_explain_what_does_not_add_up_are_at_fault(
    findings: Sequence[Finding], agreed: Mapping[str, int], at_fault: Sequence[str]
) -> None:
    assert writers_at_fault(findings, MEMBERS, agreed) == at_fault


def end_checkpoint(table: OneTable) -> int:
    """Asks for a barrier; returns the checkpoint that it ends."""
    number = table.core.checkpoint
    table.tell(CheckpointAsked("a", table.core.generation), Tick(), after=0.5)
    assert table.core.checkpoint == number + 1
    return number


def agree(table: OneTable, rows: int = 5) -> None:
    """A checkpoint of ``a`` and ``b`` with rows from each to the other, up to its publication."""
    number = end_checkpoint(table)
    for here, there in (("a", "b"), ("b", "a")):
        table.tell(table.barrier(here, number, handed={there: rows}), table.flushed(here, number, received={there: rows}))


def disagree(table: OneTable, *others: str) -> list[object]:
    """``a`` handed rows to ``b``, which has none; ``others`` have nothing to do with it. Returns what follows."""
    number = end_checkpoint(table)
    out = table.tell(table.barrier("a", number, handed={"b": 249}), table.flushed("a", number))
    for other in ("b", *others):
        out += table.tell(table.barrier(other, number), table.flushed(other, number))
    return list(out)


def test_ro10_a_checkpoint_that_does_not_add_up_is_aborted_and_the_figures_are_in_the_alarm() -> None:
    table = OneTable("a", "b")
    table.grant("a", "orders")
    number = end_checkpoint(table)
    table.tell(
        table.barrier("a", number, {"orders": 249}, handed={"b": 249}), table.flushed("a", number), table.barrier("b", number)
    )
    out = table.tell(table.flushed("b", number))
    assert only(CommitCheckpoint, out) == []
    assert (table.core.generation, table.core.refuted) == (2, 1)
    assert orders(Attach, out)[0][1].membership.members == (("a", "a:1"), ("b", "b:1")), "once is no reason to exclude"
    (alarm,) = only(Alarm, out)
    assert "writer a handed 249 rows (checksum 00000000000006cf) over to writer b, which reports 0 rows" in alarm.text


def test_ro10_a_writer_whose_reports_do_not_add_up_again_is_excluded_and_the_others_go_on() -> None:
    table = OneTable("a", "b", "c")
    disagree(table, "c")
    out = disagree(table, "c")
    assert {process: order.membership.members for process, order in orders(Attach, out)} == dict.fromkeys(
        ("a", "b", "c"), (("a", "a:1"), ("c", "c:1"))
    ), "it hears of the new generation, too, so that its clients look for another writer"
    assert any(alarm.text.startswith("writer b at b:1 is excluded: writer a handed 249 rows") for alarm in only(Alarm, out))
    assert any("writer b at b:1 is excluded until it restarts" in alarm.text for alarm in table.core.alarms)
    number = end_checkpoint(table)
    table.grant("c", "orders")
    table.tell(table.barrier("a", number, handed={"c": 5}), table.flushed("a", number))
    assert only(
        CommitCheckpoint,
        table.tell(table.barrier("c", number, {"orders": 5}), table.flushed("c", number, ["f"], received={"a": 5})),
    )


def excluded_b() -> OneTable:
    table = OneTable("a", "b")
    disagree(table)
    disagree(table)
    assert table.core.alarms
    return table


def test_ro10_what_an_excluded_writer_reports_changes_nothing() -> None:
    table = excluded_b()
    generation = table.core.generation
    out = table.tell(Broken("b", generation, "false"), LoadReported("b", 1 << 40), CheckpointAsked("b", generation), after=60.0)
    assert (out, table.core.uncommitted_bytes, table.core.generation) == ([], 0, generation)
    assert orders(Grant, table.tell(table.opens("b", "orders"))) == []


def test_ro10_the_loss_of_an_excluded_writer_aborts_nothing_and_ends_the_alarm() -> None:
    table = excluded_b()
    generation = table.core.generation
    assert table.tell(WriterLost("b", "killed")) == []
    assert table.core.generation == generation
    assert not any("excluded" in alarm.text for alarm in table.core.alarms)


def test_ro10_an_excluded_writer_that_comes_back_under_its_process_id_stays_excluded() -> None:
    table = excluded_b()
    generation = table.core.generation
    assert table.tell(WriterLost("b", "killed"), joined("b")) == []
    assert table.core.generation == generation
    assert any("writer b at b:1 is excluded" in alarm.text for alarm in table.core.alarms)
    (fresh,) = (order for process, order in orders(Barrier, table.tell(joined("new"), Tick(), after=0.5)) if process == "a")
    assert fresh.next.members == (("a", "a:1"), ("new", "new:1"))


def test_ro10_an_excluded_writer_that_drains_is_let_go() -> None:
    table = excluded_b()
    assert orders(Detach, table.tell(WriterLeaving("b"))) == [("b", Detach())]


def test_ro10_the_last_writer_is_not_excluded_however_often_its_reports_do_not_add_up() -> None:
    table = OneTable("a")
    for _ in range(4):
        number = end_checkpoint(table)
        out = table.tell(table.barrier("a", number, handed={"a": 5}), table.flushed("a", number, received={"a": 5}, written=4))
        assert orders(Attach, out)[0][1].membership.members == (("a", "a:1"),)
        table.tell(Tick(), after=20.0)


def test_ro10_of_two_that_disagree_the_one_that_has_just_come_goes() -> None:
    """``a`` is the bucket side of the pair, but many checkpoints of it added up before ``z`` came."""
    table = OneTable("a", "b")
    for _ in range(3):
        agree(table)
    number = table.core.checkpoint
    table.tell(joined("z"))
    table.pass_all(number, "a", "b")
    for _ in range(2):
        number = end_checkpoint(table)
        table.tell(table.barrier("z", number, handed={"a": 9}), table.flushed("z", number))
        for other in ("a", "b"):
            table.tell(table.barrier(other, number), table.flushed(other, number))
    assert next(alarm.text for alarm in table.core.alarms if "excluded" in alarm.text).startswith("writer z at z:1")


def test_ro10_an_offset_of_a_channel_that_another_writer_has_aborts_the_checkpoint() -> None:
    table = OneTable("a", "b")
    table.grant("a", "orders")
    number = end_checkpoint(table)
    table.tell(table.barrier("a", number), table.flushed("a", number), table.barrier("b", number, {"orders": 1_000}))
    out = table.tell(table.flushed("b", number))
    assert only(CommitCheckpoint, out) == []
    assert "writer b reported an offset of channel 'orders', which it does not hold" in only(Alarm, out)[0].text


def test_ro10_an_offset_is_judged_when_it_is_reported_not_when_the_checkpoint_is_complete() -> None:
    table = OneTable("a", "b")
    number = end_checkpoint(table)
    table.tell(table.barrier("b", number, {"orders": 1_000}), table.barrier("a", number), table.flushed("a", number))
    table.grant("b", "orders")
    out = table.tell(table.flushed("b", number))
    assert only(CommitCheckpoint, out) == []
    assert table.core.generation == 2


def test_ro10_the_offset_of_a_hold_that_has_ended_counts_until_its_checkpoint_is_decided() -> None:
    table = OneTable("a")
    hold = table.grant("a", "orders")
    number = end_checkpoint(table)
    table.tell(table.ended("a", "orders", hold, uncommitted=True))
    out = table.tell(table.barrier("a", number, {"orders": 9}), table.flushed("a", number))
    assert only(CommitCheckpoint, out) == [CommitCheckpoint(1, number, [], {"orders": (1, 9, "ann")})]


def with_files(table: OneTable) -> int:
    """A checkpoint with a file of ``a`` and two of ``b``, whose slot is sent."""
    number = end_checkpoint(table)
    table.tell(InstantAsked("a", table.core.generation, number), table.issued(number))
    for writer, files in (("a", ["one"]), ("b", ["two", "three"])):
        out = table.tell(
            table.barrier(writer, number, handed={writer: 5}), table.flushed(writer, number, files, received={writer: 5})
        )
    assert only(CommitCheckpoint, out)[0].files == ["one", "two", "three"]
    return number


def test_ro10_the_writer_of_a_file_that_is_not_there_is_at_fault() -> None:
    table = OneTable("a", "b")
    for generation in (1, 2):
        number = with_files(table)
        out = table.tell(FilesRefused(generation, number, {2: "three is not there"}))
        assert any("writer b reported a false file: three is not there" in alarm.text for alarm in only(Alarm, out))
        assert only(DropCheckpoint, out) == [DropCheckpoint(generation, number)]
        assert table.core.generation == generation + 1
        table.tell(Tick(), after=1.0)
    assert any("writer b at b:1 is excluded" in alarm.text for alarm in table.core.alarms)


def test_ro10_files_that_are_refused_when_their_generation_is_over_end_their_checkpoint_and_nothing_else() -> None:
    table = OneTable("a", "b")
    number = with_files(table)
    table.tell(WriterLost("b", "killed"))
    generation = table.core.generation
    out = table.tell(FilesRefused(1, number, {0: "one is not there"}))
    assert only(DropCheckpoint, out) == [DropCheckpoint(1, number)]
    assert table.core.generation == generation
    assert not any("excluded" in alarm.text for alarm in table.core.alarms)


def test_ro10_an_alarm_stays_short_whatever_names_a_writer_reports() -> None:
    table = OneTable("a", "b")
    number = end_checkpoint(table)
    table.tell(table.barrier("a", number, {"x" * 1_000_000: 1}, handed={"y" * 1_000_000 + str(at): 1 for at in range(9)}))
    table.tell(table.flushed("a", number), table.barrier("b", number))
    out = table.tell(table.flushed("b", number))
    (alarm,) = only(Alarm, out)
    assert "; 7 more" in alarm.text
    assert len(alarm.text) < 2_000
