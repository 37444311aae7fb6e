"""The archived timeline's files: merged level by level, deleted when no manifest names them, each instant kept once."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from headgate_tables.hudi.timeline.history import FILES_PER_LEVEL, MANIFESTS_KEPT, append_history, obsolete_history
from headgate_tables.hudi.timeline.history_files import HistoryFolder
from headgate_tables.system import SystemIds
from support.faults import FailingStore, Fault, KilledError
from support.histories import PATH, append, entries, entry, facts, instant, listed, names_in, store_in, stored, told


@pytest.mark.slow
def test_ten_files_of_a_level_become_one_of_the_next(tmp_path: Path) -> None:
    seen = []
    for number in range(FILES_PER_LEVEL**2 + 3):
        append(tmp_path, [2 * number, 2 * number + 1])
        seen.append(len(listed(tmp_path)))
    assert listed(tmp_path)[0] == f"{instant(0)}_{instant(10 * (2 * FILES_PER_LEVEL**2 - 1))}_2.parquet"
    assert seen[8:11] == [9, 1, 2]
    assert seen[98:101] == [18, 1, 2]
    assert stored(tmp_path) == entries(range(2 * (FILES_PER_LEVEL**2 + 3)))
    assert int((tmp_path / PATH / "_version_").read_text()) == len(seen), "one manifest each"


@pytest.mark.slow
def test_every_kept_manifest_finds_its_files_when_obsolete_ones_are_deleted(tmp_path: Path) -> None:
    table = store_in(tmp_path)
    for number in range(35):
        append(tmp_path, [number])
        table.delete(obsolete_history(table, "history"))
        folder, kept = HistoryFolder(table, "history"), sorted(names_in(tmp_path))
        manifests = [name for name in kept if name.startswith("manifest_")]
        assert len(manifests) == min(number + 1, MANIFESTS_KEPT)
        for name in manifests:
            missing = {file.name for file in folder.manifest(int(name[9:])).files} - set(kept)
            assert not missing
        assert told(tmp_path) == facts(range(number + 1))
        assert len(kept) < 30
    assert obsolete_history(table, "history") == []


def test_checksums_of_hadoop_go_with_their_files(tmp_path: Path) -> None:
    append(tmp_path, [1])
    for name in ("manifest_1", "manifest_7"):
        (tmp_path / PATH / f".{name}.crc").write_bytes(b"crc")
    for number in range(2, 5):
        append(tmp_path, [number])
    assert obsolete_history(store_in(tmp_path), "history") == [f"{PATH}/manifest_1", f"{PATH}/.manifest_1.crc"]


def test_large_files_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(FILES_PER_LEVEL - 1):
        append(tmp_path, [number])
    sizes = {name: (tmp_path / PATH / name).stat().st_size for name in listed(tmp_path)}
    monkeypatch.setattr("headgate_tables.hudi.timeline.history._LARGEST_MERGE", 4 * min(sizes.values()) - 1)
    append(tmp_path, [FILES_PER_LEVEL])
    assert [name.partition(".")[0][-1] for name in listed(tmp_path)] == ["0"] * 7 + ["1"], "three fit together"
    monkeypatch.setattr("headgate_tables.hudi.timeline.history._LARGEST_MERGE", min(sizes.values()) - 1)
    for number in range(20, 30):
        append(tmp_path, [number])
    assert len(listed(tmp_path)) == 18
    assert stored(tmp_path) == entries([*range(9), 10, *range(20, 30)])


def test_a_large_file_keeps_none_from_being_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate_tables.hudi.timeline.history._LARGEST_MERGE", 50_000)
    noise = random.Random(SEED).randbytes(60_000)
    for number in range(FILES_PER_LEVEL):
        append_history(store_in(tmp_path), "history", [replace(entry(number), metadata=noise if number == 1 else b"m")])
    ends = [(0, 0, 0), (10, 10, 0), (20, 90, 1)]
    assert listed(tmp_path) == [f"{instant(first)}_{instant(last)}_{level}.parquet" for first, last, level in ends]


SEED = 20270101


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_stops_and_deletions_keeps_every_instant_once_and_no_dead_name_comes_back(
    tmp_path: Path, seed: int
) -> None:
    """After each stop another caller goes on, with the same batch or another that begins with the same instant."""
    chance, table, done = random.Random(SEED + seed), tmp_path / "t", 0
    dead: set[str] = set()
    stops = 0
    for _ in range(80):
        batch = range(done, done + chance.randint(1, 4))
        store = FailingStore(table, SystemIds())
        store.fault = Fault(chance.randint(1, 25), KilledError, after=chance.random() < 0.5)
        try:
            append_history(store, "history", entries(batch))
            done = batch.stop
        except KilledError:
            stops += 1
        store.fault = None
        known = told(table)
        assert known == facts(range(len(known)))
        assert len(known) >= done
        assert [each.instant for each in stored(table)] == sorted(known)
        if chance.random() < 0.4:
            gone = obsolete_history(store, "history")
            dead.update(gone)
            store.delete(gone)
        assert not dead & {f"{PATH}/{name}" for name in names_in(table)}
        done = max(done, len(known) if chance.random() < 0.5 else done)
    assert stops > 10
    assert len(dead) > 20
