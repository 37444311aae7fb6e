"""Whose rows are refused when a slice cannot be compacted, what clients and operators are told, and that writers hear of it."""

from headgate_coordinator.core.events import SliceFigures, WriterJoined, WriterLost
from headgate_coordinator.core.instructions import Attach, Instruction, RefusedSlice, RefuseSlices, Send
from headgate_coordinator.core.stuck_slices import OWN_LIMIT, StuckLoad, alarm, alarms, refused_slices
from headgate_coordinator.streams.messages import OrderTarget, order_of
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.stuck import StuckSlice
from support.one_table import OneTable, joined

LIMIT = 100
SETTINGS = TableSettings(max_log_files=LIMIT, max_log_bytes=1 << 20)
FILE_ID = "00000003-1111-2222-3333-444444444444-0"
NAME = f"day=1/{FILE_ID}"
WHY = "day=1/x.log at byte 7 cannot be decoded. Restore the file from a copy."


def load(files: int = 5, nbytes: int = 0, *, aside: bool = False, file_id: str = FILE_ID) -> StuckLoad:
    return StuckLoad(StuckSlice("day=1", file_id, WHY, tries=2, again=1_800_000_000_000, aside=aside), files, nbytes)


def refused(*loads: StuckLoad) -> tuple[RefusedSlice, ...]:
    return refused_slices("t", loads, SETTINGS)


def test_rows_of_a_slice_that_cannot_be_compacted_are_taken_far_beyond_the_limit_of_others() -> None:
    assert refused(load(LIMIT * (OWN_LIMIT - 1) - 1), load(0, (1 << 20) * (OWN_LIMIT - 1) - 1)) == ()


def test_close_to_its_own_limit_of_files_or_bytes_its_rows_are_refused() -> None:
    for full in (load(LIMIT * (OWN_LIMIT - 1)), load(0, (1 << 20) * (OWN_LIMIT - 1))):
        [slice_] = refused(full)
        assert (slice_.partition, slice_.bucket, slice_.refusal.code) == ("day=1", 3, "CODE_SLICE_SET_ASIDE")
        assert f"file slice {NAME} takes no rows" in slice_.refusal.message
        assert "its rows are refused" in alarm("t", full, SETTINGS).text


def test_rows_of_a_slice_that_is_set_aside_are_refused_whatever_waits_in_it() -> None:
    [slice_] = refused(load(0, aside=True))
    assert "an operator has set it aside" in slice_.refusal.message
    assert f"headgate table slice readmit t {NAME}" in slice_.refusal.fix
    assert "x.log" not in slice_.refusal.message + slice_.refusal.fix, "clients are told no paths"


def test_a_file_group_without_a_bucket_number_gets_no_rows_from_here_and_needs_no_refusal() -> None:
    assert refused(load(aside=True, file_id="f3-0")) == ()


def test_the_alarm_names_slice_file_byte_when_it_is_tried_again_and_the_commands() -> None:
    text = alarm("t", load(), SETTINGS).text
    assert text == (
        f"file slice {NAME} cannot be compacted: day=1/x.log at byte 7 cannot be decoded. Restore the file from a copy. "
        "2 plans went on without it, and it is tried again after 20270115080000000; other slices go on. "
        f"Restore the file, then `headgate table slice readmit t {NAME}`; "
        f"`headgate table slice set-aside t {NAME}` refuses its rows until then"
    )
    assert alarm("t", load(aside=True), SETTINGS).text.startswith(f"file slice {NAME} is set aside (day=1/x.log at byte 7")


def test_a_slice_whose_loss_was_accepted_alarms_nobody_until_it_fails_again_or_is_set_aside() -> None:
    for again, aside, count in ((0, False, 0), (7, False, 1), (0, True, 1)):
        stuck = StuckSlice("day=1", FILE_ID, WHY, tries=2, again=again, aside=aside, without=("x.log",))
        assert len(alarms("t", [StuckLoad(stuck, 1, 1)], SETTINGS)) == count
    assert len(alarms("t", [load()], SETTINGS)) == 1


def figures(*slices: RefusedSlice) -> SliceFigures:
    return SliceFigures(0, 0, LIMIT, 1 << 20, refused=slices)


def told(out: list[Instruction]) -> list[tuple[str, object]]:
    return [(send.process, send.order) for send in out if isinstance(send, Send) and isinstance(send.order, RefuseSlices)]


def test_every_writer_hears_once_which_slices_are_refused_and_when_none_is_any_more() -> None:
    table = OneTable("a", "b", figures=figures())
    slices = refused(load(aside=True))
    out = table.tell(figures(*slices))
    assert told(out) == [("a", RefuseSlices(slices)), ("b", RefuseSlices(slices))]
    assert told(table.tell(figures(*slices))) == []
    assert told(table.tell(figures())) == [("a", RefuseSlices(())), ("b", RefuseSlices(()))]


def test_a_writer_hears_it_behind_each_attachment_also_from_an_owner_that_has_just_taken_over() -> None:
    slices = refused(load(aside=True))
    table = OneTable(figures=figures(*slices))
    for event in (joined("a"), WriterLost("a", "gone"), joined("a")):
        orders = [send.order for send in table.tell(event) if isinstance(send, Send)]
        attached = [at for at, order in enumerate(orders) if isinstance(order, Attach)]
        assert [orders[at + 1] for at in attached] == [RefuseSlices(slices)] * len(attached)
        assert len(attached) == isinstance(event, WriterJoined)


def test_other_slices_are_not_held_back_by_those_that_are_refused() -> None:
    table = OneTable("a", figures=figures())
    table.tell(figures(*refused(load(aside=True))))
    assert table.core.pressure.stopped is None
    assert table.core.alarms == []


def test_the_order_carries_an_error_that_clients_can_act_on() -> None:
    order = order_of(OrderTarget("t", 1, "", TableDefinition()), 1, RefuseSlices(refused(load(aside=True))))
    [slice_] = order.refuse_slices.slices
    assert (slice_.partition, slice_.bucket) == ("day=1", 3)
    assert (slice_.why.code, slice_.why.action) == (errors_pb2.CODE_SLICE_SET_ASIDE, errors_pb2.ACTION_FIX_CALL)
