"""Between the pure core and a control stream: orders as they stand there, and reports that are refused."""

import pytest

from headgate_coordinator.core import events
from headgate_coordinator.core.instructions import Attach, Barrier, Membership, Refusal, Throttle
from headgate_coordinator.core.tally import Tally
from headgate_coordinator.streams.messages import MOST_TALLIES, OrderTarget, event_of, order_of
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.errors import UnknownMessageError

TO = OrderTarget("t", 3, "file:///t", TableDefinition())


def test_a_pause_is_no_rate_and_no_refusal() -> None:
    assert order_of(TO, 1, Throttle(paused=True)).throttle == wire.Throttle(paused=True)
    assert order_of(TO, 1, Throttle(1)).throttle == wire.Throttle(bytes_per_second=1)
    stopped = order_of(TO, 1, Throttle(stopped=Refusal("CODE_OVERLOADED", "200 log files wait", "Start compactors."))).throttle
    assert (stopped.stopped, stopped.paused, stopped.why.code) == (True, False, errors_pb2.CODE_OVERLOADED)


def test_both_ends_of_the_exchange_report_rows_and_checksums_by_process_and_what_is_in_files_is_summed() -> None:
    tallies = [wire.Tally(process="a", rows=3, checksum=2**64 - 1), wire.Tally(process="b", rows=4, checksum=5)]
    wanted = {"a": Tally(3, 2**64 - 1), "b": Tally(4, 5)}
    passed = event_of("p", wire.TableReport(generation=2, barrier_passed=wire.BarrierPassed(checkpoint=7, handed=tallies)))
    assert passed == events.BarrierPassed("p", 2, 7, {}, 0, wanted)
    files = [wire.FileStatus(name="f", rows=3, deletes=2), wire.FileStatus(name="g", rows=1)]
    report = wire.Flushed(checkpoint=7, files=files, received=tallies, beaten=1)
    flushed = event_of("p", wire.TableReport(generation=2, flushed=report))
    assert isinstance(flushed, events.Flushed)
    assert (flushed.received, flushed.written, flushed.beaten) == (wanted, 6, 1)


def test_a_report_about_more_others_than_a_cluster_has_is_an_error() -> None:
    tallies = [wire.Tally(process=str(number), rows=1) for number in range(MOST_TALLIES + 1)]
    for report in (
        wire.TableReport(barrier_passed=wire.BarrierPassed(handed=tallies)),
        wire.TableReport(flushed=wire.Flushed(received=tallies)),
    ):
        with pytest.raises(UnknownMessageError, match="about more others than a cluster has"):
            event_of("p", report)


def test_every_report_of_the_contract_is_an_event_and_one_that_is_not_in_it_is_an_error() -> None:
    for field in wire.TableReport.DESCRIPTOR.oneofs_by_name["message"].fields:
        report = wire.TableReport()
        getattr(report, field.name).SetInParent()
        assert event_of("p", report) is not None
    with pytest.raises(UnknownMessageError, match="a report of a writer about a table is unknown here"):
        event_of("p", wire.TableReport())


def test_the_order_that_begins_a_checkpoint_says_how_its_blocks_are_written() -> None:
    begun = Membership(8, (("a", "a:1"),), (0,))
    assert order_of(TO, 1, Attach(begun), "avro").attach.membership.block_format == "avro"
    assert order_of(TO, 1, Barrier(7, begun), "auto").barrier.next.block_format == "auto"
