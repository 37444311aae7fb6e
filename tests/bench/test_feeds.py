"""What clients of `./task bench ingest` send: a feed that is kept between runs, by threads whose errors are the run's."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bench.ingest import workload
from bench.ingest.clients import in_threads
from bench.ingest.workload import kept


def batches(*numbers: int) -> Iterator[pa.RecordBatch]:
    for number in numbers:
        if number < 0:
            raise KeyboardInterrupt
        yield pa.RecordBatch.from_pydict({"id": [number]})


def rows(feed: str) -> list[int | None]:
    return pa.ipc.open_file(pa.memory_map(feed)).read_all()["id"].to_pylist()


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The code that makes a feed."""
    monkeypatch.setattr(workload, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("HEADGATE_BENCH_BEGIN", "0")
    path = tmp_path / "maker.py"
    path.write_text("one")
    return path


def test_a_feed_whose_making_was_broken_off_is_made_again(maker: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        kept("rows", batches(1, -1), str(maker))
    assert rows(kept("rows", batches(1, 2), str(maker))) == [1, 2]


def test_a_feed_is_kept_until_its_name_or_its_code_is_another(maker: Path) -> None:
    first = kept("rows", batches(1), str(maker))
    assert kept("rows", batches(2), str(maker)) == first
    assert rows(first) == [1]
    assert rows(kept("more", batches(3), str(maker))) == [3]
    maker.write_text("two")
    assert rows(kept("rows", batches(4), str(maker))) == [4]


def test_an_error_of_one_thread_is_raised_once_all_have_ended() -> None:
    failed, ended = threading.Event(), []

    def work(at: int) -> None:
        if at == 1:
            failed.set()
            raise ValueError(at)
        failed.wait()
        ended.append(at)

    with pytest.raises(ValueError, match="1"):
        in_threads(work, 3)
    assert sorted(ended) == [0, 2]
