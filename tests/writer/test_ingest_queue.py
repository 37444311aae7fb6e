"""What waits at the ingest side keeps its order, and a barrier its place."""

import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_writer.admission import Admitted
from headgate_writer.attached import Membership
from headgate_writer.channels import Entry, Hold
from headgate_writer.ingest_queue import Barrier, IngestQueue
from headgate_writer.orders import read_membership

PLAN: Membership = read_membership(wire.Membership(checkpoint=2), 128)


def entry(nbytes: int) -> Entry:
    """A batch of that size."""
    return Entry(Hold("c", 1, 1, 0), 1, 1, Admitted(pa.table({"id": ["a"]}), None, nbytes))


def test_a_turn_ends_at_a_barrier_and_the_barrier_is_a_turn_of_its_own() -> None:
    queue = IngestQueue()
    before, behind, barrier = entry(1), entry(1), Barrier(1, PLAN)
    queue.append_entry(before)
    queue.append_barrier(barrier)
    queue.append_entry(behind)
    assert [queue.take_turn(100), queue.take_turn(100), queue.take_turn(100)] == [[before], barrier, [behind]]


def test_a_turn_takes_up_to_its_bytes_and_at_least_one_batch() -> None:
    queue = IngestQueue()
    entries = [entry(60), entry(30), entry(30), entry(500)]
    for each in entries:
        queue.append_entry(each)
    assert queue.nbytes == 620
    assert [queue.take_turn(100) for _ in range(3)] == [entries[:2], entries[2:3], entries[3:]]
    assert (queue.nbytes, len(queue)) == (0, 0)
