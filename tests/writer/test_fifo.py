"""What waits at the ingest side keeps its order, and a barrier its place."""

import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_writer.admission import Admitted
from headgate_writer.attached import Membership
from headgate_writer.channels import Entry, Hold
from headgate_writer.fifo import Border, Fifo
from headgate_writer.orders import read_membership

PLAN: Membership = read_membership(wire.Membership(checkpoint=2))


def entry(nbytes: int) -> Entry:
    """A batch of that size."""
    return Entry(Hold("c", 1, 1, 0), 1, 1, Admitted(pa.table({"id": ["a"]}), None, nbytes))


def test_a_turn_ends_at_a_barrier_and_the_barrier_is_a_turn_of_its_own() -> None:
    fifo = Fifo()
    before, behind, border = entry(1), entry(1), Border(1, PLAN)
    fifo.put(before)
    fifo.border(border)
    fifo.put(behind)
    assert [fifo.turn(100), fifo.turn(100), fifo.turn(100)] == [[before], border, [behind]]


def test_a_turn_takes_up_to_its_bytes_and_at_least_one_batch() -> None:
    fifo = Fifo()
    entries = [entry(60), entry(30), entry(30), entry(500)]
    for each in entries:
        fifo.put(each)
    assert fifo.nbytes == 620
    assert [fifo.turn(100) for _ in range(3)] == [entries[:2], entries[2:3], entries[3:]]
    assert (fifo.nbytes, len(fifo)) == (0, 0)
