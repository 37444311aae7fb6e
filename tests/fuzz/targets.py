"""The stream of the exchange on which a writer would take frames now: its process, and where the table stands."""

from dataclasses import dataclass

from headgate.status import Status
from headgate_proto.cluster.v1 import exchange_pb2


@dataclass
class Target:
    """Anybody who may ask for the status of a table knows all of this."""

    process: str = ""
    epoch: int = 1
    generation: int = 1
    checkpoint: int = 1

    def note(self, status: Status, writer: str) -> None:
        """``status``: of the table; ``writer``: the address of the one that gets the frames."""
        self.process = next((each.process for each in status.writers if each.address == writer), self.process)
        for table in status.tables:
            self.epoch, self.generation, self.checkpoint = table.epoch, table.generation, table.checkpoint

    def stream(self, table: str, sender: str) -> exchange_pb2.StreamName:
        """The name of a stream that the writer takes as long as the table stands there."""
        return exchange_pb2.StreamName(
            table=table, epoch=self.epoch, generation=self.generation, sender=sender, receiver=self.process
        )
