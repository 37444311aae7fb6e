"""Which operations a compactor does itself, and which go to Spark."""

import pytest

from headgate_compactor.runner import RunningAttempt
from headgate_compactor.settings import CompactorSettings
from headgate_compactor.sizes import by_size, spark_runner
from headgate_proto.cluster.v1 import compaction_pb2 as wire


@pytest.mark.parametrize(
    ("base", "logs", "where"), [(None, [60], "here"), (40, [30, 30], "here"), (40, [30, 31], "spark"), (None, [101], "spark")]
)
def test_an_operation_goes_to_spark_by_the_bytes_of_base_and_logs(base: int | None, logs: list[int], where: str) -> None:
    operation = wire.CompactionOperation(logs=[wire.PinnedFile(name=str(size), size=size) for size in logs])
    if base is not None:
        operation.base.CopyFrom(wire.PinnedFile(name="base", size=base))
    done: list[str] = []

    def there(name: str) -> wire.WorkRequest:
        done.append(name)
        return wire.WorkRequest()

    run = by_size(lambda running: there("here"), lambda running: there("spark"), 100)
    run(RunningAttempt(wire.RunAttempt(operation=operation)))
    assert done == [where]


def test_without_a_master_there_is_no_spark() -> None:
    assert spark_runner(CompactorSettings(coordinator=["localhost:1"])) is None
