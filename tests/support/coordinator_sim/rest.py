"""What has to come true once faults have stopped: everything is committed, then nothing happens any more (rule RO7)."""

from support.coordinator_sim.cluster import Cluster
from support.coordinator_sim.slots import StuckError

FAIR_PASSES = 1500
IDLE_PASSES = 20


def come_to_rest(cluster: Cluster) -> None:
    """Fair steps. Raises StuckError."""
    end_faults(cluster)
    for _ in range(FAIR_PASSES):
        if all(cluster.log.offset(name) == rows for name, rows in cluster.rows.items()):
            return _fall_idle(cluster)
        _have_producers(cluster)
        fair_pass(cluster, 0.1)
    offsets = {name: cluster.log.offset(name) for name in cluster.rows}
    raise StuckError(f"not everything was committed: {offsets} of {cluster.rows}")


def end_faults(cluster: Cluster) -> None:
    """From now on everything works."""
    cluster.refusals, cluster.deaf = 0.0, False
    cluster.slow_flushes = False
    for writer in cluster.writers.values():
        writer.hurry()
    for owner in cluster.owners:
        owner.committer.refusals, owner.committer.deaf = 0.0, False
    if all(writer.leaving for writer in cluster.writers.values()):
        cluster.start_writer()
    _have_producers(cluster)


def _have_producers(cluster: Cluster) -> None:
    """Somebody has the rows that are missing: the last one may still be fenced by an open of one who is dead."""
    for name in cluster.rows:
        if all(producer.over for producer in cluster.producers if producer.channel == name):
            cluster.producers.append(cluster.producer(name))


def _fall_idle(cluster: Cluster) -> None:
    for producer in cluster.producers:
        producer.die()
    for _ in range(IDLE_PASSES):
        fair_pass(cluster, 1.0)
    before = _signs_of_life(cluster)
    for _ in range(IDLE_PASSES):
        fair_pass(cluster, 1.0)
    if _signs_of_life(cluster) != before or cluster.owner.core.deadline() is not None:
        raise StuckError("the idle table does something")


def _signs_of_life(cluster: Cluster) -> tuple[int, int, int]:
    return len(cluster.log.slots), cluster.owner.core.checkpoint, cluster.owner.core.generation


def fair_pass(cluster: Cluster, seconds: float) -> None:
    """Everybody does all that can be done now."""
    cluster.now += seconds
    for writer in cluster.writers.values():
        for owner in cluster.owners:
            cluster.connect(writer, owner)
        cluster.beat(writer)
    for producer in cluster.producers:
        if producer.idle:
            cluster.open(producer)
        while producer.has_more:
            producer.send()
    for writer in cluster.writers.values():
        for connection in list(writer.connections):
            for _ in range(len(connection.batches) + 1):
                if connection in writer.connections:
                    cluster.take(writer, connection)
        for _ in range(len(writer.fifo)):
            writer.ingest()
    for stream in cluster.exchanges.values():
        for _ in range(len(stream.frames)):
            cluster.receive(stream)
    for writer in cluster.writers.values():
        writer.flush()
    _settle(cluster)


def _settle(cluster: Cluster) -> None:
    """Control streams and slot work."""
    cluster.look_after()
    for link in list(cluster.links):
        for _ in range(len(link.up) + 1):
            cluster.hear(link)
        for _ in range(len(link.down) + 1):
            cluster.obey(link)
    while cluster.puts:
        cluster.land()
    for owner in list(cluster.owners):
        while not owner.over and not (owner.committer.idle and not owner.committer.answers):
            owner.committer.step()
            owner.answer(cluster.now)
            while cluster.puts:
                cluster.land()
    cluster.tick()
