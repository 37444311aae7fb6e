"""What heartbeats of writers tell the tables."""

from typing import Any

from headgate_coordinator.streams.writers import Writers, WriterSession
from headgate_proto.cluster.v1 import coordination_pb2 as wire


class Listener:
    """The tables of a coordinator. ``loads``: those that were reported."""

    def __init__(self) -> None:
        self.loads: list[tuple[str, int]] = []

    def load_reported(self, _session: WriterSession, table: str, uncommitted_bytes: int) -> None:
        self.loads.append((table, uncommitted_bytes))

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


def test_a_load_is_reported_at_each_heartbeat_and_its_end_once() -> None:
    """Rows that were dropped and sent again may have as many bytes as before. A table where nothing happens costs nothing."""
    listener = Listener()
    writers = Writers(listener)
    session = writers.add_writer("w", "w:1")

    def heard(**loads: int) -> list[tuple[str, int]]:
        listener.loads = []
        told = [wire.Load(table=table, uncommitted_bytes=size) for table, size in loads.items()]
        writers.handle_writer_message(session, wire.ControlRequest(heartbeat=wire.Heartbeat(loads=told)))
        return listener.loads

    assert heard(busy=5, idle=0) == [("busy", 5)]
    assert heard(busy=5) == [("busy", 5)]
    assert heard(busy=0) == [("busy", 0)]
    assert heard(busy=0) == heard() == []
    assert heard(busy=3) == [("busy", 3)]
    assert heard() == [("busy", 0)]
    assert heard() == []
