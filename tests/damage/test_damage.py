"""Trials on damaged tables, as `./task damage` makes them, and what they go by."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from damage.templates import Template
from damage.trial import Outcome, Step
from damage.verdicts import wrong_with
from damage.wounds import Wound, hurt, kind_of

TRIALS, SEED = 200, 20261123
OURS = Template("ours", Path(), ["a", "b"], None, ["a", "b", "c"], None, True)
SLOT, BASE = Wound("cut short", "table/.hoodie/.headgate/slot/7", "slot"), Wound("deleted", "table/p/x.parquet", "base file")


@pytest.mark.slow
def test_on_every_damaged_table_a_program_gets_the_right_rows_or_an_error_of_ours() -> None:
    command = [sys.executable, "-m", "damage", "--trials", str(TRIALS), "--seed", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5000:]
    assert f"{TRIALS} trials" in done.stdout


def outcome(rows: list[str] | None, *found: str, error: str = "") -> Outcome:
    return Outcome([Step("scan", rows, error)], list(found))


@pytest.mark.parametrize(
    ("wound", "happened", "wrong"),
    [
        (SLOT, outcome(["a", "b"]), ""),
        (SLOT, outcome(None, error="CorruptFileError"), ""),
        (SLOT, outcome(["a"], "slot 7"), "wrong rows and no error"),
        (BASE, outcome(["a"], "x.parquet"), ""),
        (BASE, outcome(["a"]), "verify sees nothing"),
        (SLOT, Outcome([Step("scan", raw="KeyError")]), "KeyError"),
        (SLOT, Outcome([Step("scan", ["a", "b"], seconds=6.0)]), "took 6.0 s"),
        (SLOT, Outcome(peak=600 << 20), "took 600 MiB"),
        (SLOT, Outcome(ended="hangs"), "hangs"),
        (SLOT, Outcome(printed="thread panicked"), "panicked"),
    ],
)
def test_a_verdict_is_wrong_for_what_no_program_may_get(wound: Wound, happened: Outcome, wrong: str) -> None:
    found = wrong_with(OURS, wound, happened)
    assert bool(found) == bool(wrong)
    assert all(wrong in each for each in found)


def test_a_wound_is_the_same_for_a_seed_and_of_one_kind_of_file(tmp_path: Path) -> None:
    made = []
    for copy in ("a", "b"):
        for name in (".hoodie/timeline/1.clean", ".hoodie/hoodie.properties", "p/x.parquet"):
            file = tmp_path / copy / "table" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(name.encode())
        wound = hurt(tmp_path / copy, Random(SEED))
        made.append((wound, {str(file.relative_to(tmp_path / copy)) for file in (tmp_path / copy).rglob("*")}))
    assert made[0] == made[1]
    assert made[0][0].kind == kind_of(made[0][0].path)
