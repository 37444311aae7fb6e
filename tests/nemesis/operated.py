"""Faults from which a table does not come back by itself: an operator types the commands that its alarms name."""

import random
import time
from pathlib import Path

from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import parse_time
from headgate_tables.hudi import open_table
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.view import FileGroup
from headgate_tables.storage.open import open_store
from nemesis.scene import NotWell, Scene
from nemesis.schedule import SECONDS, Strike
from support.damage import end_of_last_page, flip
from support.systems import SetClock, system

ALARM_WITHIN_S = 60.0
"""For a compaction to come to a slice: that has to have enough commits first."""
COMPACTED_WITHIN_S = 60.0
FUTURE_MS = 600_000
_TRIES = 5


def slice_set_aside(scene: Scene, strike: Strike) -> None:
    """One byte of the keys of its newest rows is another. While it is aside the table goes on, and afterwards it is compacted."""
    for choice in range(strike.choice, strike.choice + _TRIES):
        group, file = _newest_rows(scene, choice)
        if _set_aside_and_readmitted(scene, strike, group, file):
            return
    raise NotWell(f"each of {_TRIES} slices was compacted although it was damaged")


def _set_aside_and_readmitted(scene: Scene, strike: Strike, group: FileGroup, file: Path) -> bool:
    """False when the slice was being compacted as it was damaged: the compaction had read the right bytes."""
    name = f"{group.partition}/{group.file_id}"
    set_aside, readmit = (f"headgate table slice {what} {scene.name} {name}" for what in ("set-aside", "readmit"))
    merged = _base_files(file.parent, group)
    right = file.read_bytes()
    is_aside = False
    overwrite(file, flip(right, end_of_last_page(right, "_hoodie_record_key")))
    try:

        def is_named_or_merged() -> bool:
            return _is_named(scene, set_aside) or _base_files(file.parent, group) != merged

        scene.wait_for(f"an alarm that names `{set_aside}`", is_named_or_merged, ALARM_WITHIN_S)
        if not _is_named(scene, set_aside):
            return False
        is_aside = True
        scene.command(set_aside)
        scene.wait(SECONDS[strike.kind])
        scene.goes_on(f"while {name} was set aside")
        _wait_for_alarm(scene, readmit)
    finally:
        overwrite(file, right)
        if is_aside:
            scene.command(readmit)
    scene.wait_for(f"an end of the alarms of {name}, which was readmitted", lambda: _is_quiet(scene, name), COMPACTED_WITHIN_S)
    if not _base_files(file.parent, group) - merged:
        scene.findings.append(f"{name} has no alarm any more, and was not compacted")
    return True


def future_times(scene: Scene, strike: Strike) -> None:
    """As if an owner whose clock was ahead had fenced, which coordinators refuse to do."""
    for name in scene.parts.coordinators:
        scene.drain(name)
    now = round(time.time() * 1000)
    ahead = read_state(open_store(scene.url, scene.place.options, system().ids), LOG_LAYOUT)[0].ahead
    accepted = parse_time(ahead.floor) + now - ahead.at if ahead else now  # by earlier strikes: so far they raise no alarm
    clock = SetClock(now)
    with open_table(scene.url, storage_options=scene.place.options, take_over=True, system=system(clock)) as table:
        clock.now = FUTURE_MS + max([accepted, *(parse_time(commit.completion) for commit in table.commits())])
        table.own()
    for name in scene.parts.coordinators:
        scene.start(name)
    for name in scene.parts.coordinators:
        scene.cluster.wait_ready(name)
    _wait_for_alarm(scene, "headgate table adopt TABLE --future-times")
    scene.command(f"headgate table adopt {scene.name} --future-times")
    scene.goes_on("after an operator went on above times in the future")


def overwrite(file: Path, content: bytes) -> None:
    """In place: it stays the same file."""
    with file.open("r+b") as opened:
        opened.write(content)


def _newest_rows(scene: Scene, choice: int) -> tuple[FileGroup, Path]:
    """A slice that has rows since its last compaction, and the newest log file with some."""
    with open_table(scene.url, storage_options=scene.place.options) as table:
        found = []
        for group in table.file_groups():
            part = group.slices()[-1]
            files = [scene.folder / part.path(log.name) for log in part.logs]
            found += [(group, file) for file in files if b"PAR1" in file.read_bytes()][-1:]
    return random.Random(choice).choice(found)


def _base_files(folder: Path, group: FileGroup) -> set[Path]:
    return set(folder.glob(f"{group.file_id}_*.parquet"))


def _wait_for_alarm(scene: Scene, command: str) -> None:
    scene.wait_for(f"an alarm that names `{command}`", lambda: _is_named(scene, command), ALARM_WITHIN_S)


def _is_named(scene: Scene, command: str) -> bool:
    return any(f"`{command}`" in alarm for table in scene.told() for alarm in table.alarms)


def _is_quiet(scene: Scene, name: str) -> bool:
    told = scene.told()
    return any(table.state == "owned" for table in told) and not any(name in alarm for table in told for alarm in table.alarms)
