"""The stream of the exchange on which a writer would take frames now: its process, and where the table stands."""

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.status import Status
from headgate_proto.cluster.v1 import exchange_pb2


@dataclass
class Target:
    """Anybody who may ask for the status of a table knows all of this. ``part``: the name of the writer that gets the frames."""

    part: str = "writer-1"
    process: str = ""
    epoch: int = 1
    generation: int = 1
    checkpoint: int = 1

    def note(self, status: Status, writers: Mapping[str, str]) -> None:
        """``status``: of the table; ``writers``: real ones, by their addresses. One that was excluded reads no frames."""
        said = " ".join(alarm for table in status.tables for alarm in table.alarms)
        for each in status.writers:
            if each.address in writers and f"writer {each.process} at {each.address} is excluded" not in said:
                self.part, self.process = writers[each.address], each.process
        for table in status.tables:
            self.epoch, self.generation, self.checkpoint = table.epoch, table.generation, table.checkpoint

    def stream(self, table: str, sender: str) -> exchange_pb2.StreamName:
        """The name of a stream that the writer takes as long as the table stands there."""
        return exchange_pb2.StreamName(
            table=table, epoch=self.epoch, generation=self.generation, sender=sender, receiver=self.process
        )
