"""Links of a slot's staged files, by an owner that may be deposed between two of them."""

from collections.abc import Iterable
from pathlib import Path

from headgate_tables.commitlog.claim import OWNERSHIP_TRUSTED_S
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.records import DataFile, OwnerProcess
from headgate_tables.storage.store import Outcome
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, SetClock, system

NAMES = ("a", "b", "c")


def test_h8_an_owner_that_sleeps_between_two_links_makes_no_further_one_when_it_was_deposed(tmp_path: Path) -> None:
    store, clock = FaultyStore(tmp_path / "table"), SetClock()
    create_log(store, LOG_LAYOUT, system(), {}, [])
    log = CommitLog(store, LOG_LAYOUT, system(clock), OwnerProcess("library", "here", 1))
    instant = log.begin()
    staged = [f"{LOG_LAYOUT.stage_folder(log.state.epoch, 'process')}/{name}" for name in NAMES]
    store.stage([(path, [b"rows"]) for path in staged])
    linked: list[str] = []

    def sleeps_after_the_first(names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        outcomes = []
        for source, target in names:
            outcomes += real([(source, target)])
            linked.append(target)
            if len(linked) == 1:
                clock.now += round(OWNERSHIP_TRUSTED_S * 1000) + 1
                store.link_all = real  # type: ignore[method-assign]
                CommitLog(store, LOG_LAYOUT, system(clock), OwnerProcess("library", "there", 2)).own()
        return outcomes

    real = store.link_all
    store.link_all = sleeps_after_the_first  # type: ignore[method-assign]
    files = [DataFile(f"data/{name}", 4, "", path) for name, path in zip(NAMES, staged, strict=True)]
    log.commit(instant, files, lambda completion: [(f"done/{instant}", b"")])  # its slot was won, so it is committed (rule W2)
    assert linked == ["data/a"]
    assert sorted(store.list_folder("data").files) == list(NAMES), "the successor puts in place what was won"
