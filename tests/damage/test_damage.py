"""Trials on damaged tables, as `./task damage` makes them, and what they go by."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from damage.templates import Template
from damage.trial import Outcome, Step, base_files, has_broken_page
from damage.verdicts import is_unseen, wrong_with
from damage.wounds import FORGED, Wound, hit_block, hurt, kind_of
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, encode_block
from support.tables import rows as table_of

TRIALS, SEED = 200, 20261123
NEWEST = "table/p/newest.parquet"
DECIDED = "table/.hoodie/timeline/3_4.deltacommit"
OURS = Template(
    "ours", Path(), ["a", "b"], table_of(("c", 1, "x")), ["a", "b", "c"], None, True, frozenset([NEWEST]), frozenset([DECIDED])
)
SPARK = Template("of Spark", Path(), ["a", "b"], None, ["a", "b"], None, False)
SLOT, BASE = Wound("cut short", "table/.hoodie/.headgate/slot/7", "slot"), Wound("deleted", "table/p/x.parquet", "base file")
COMMIT = "table/.hoodie/timeline/1_2.deltacommit"
NOBODYS = f"{COMMIT}: no slot reserved this instant"


def log(how: str = "bits flipped", block: BlockKind | None = None) -> Wound:
    return Wound(how, "table/p/.f_1.log.1_0-0-0", "log file", block=block)


UNCHECKED = """
import pyarrow.parquet as pq
from damage.__main__ import main
from headgate_tables.hudi.log import reader

reader.open_parquet = lambda source: pq.ParquetFile(source, arrow_extensions_enabled=False)
main()
"""


@pytest.mark.slow
def test_on_every_damaged_table_a_program_gets_the_right_rows_or_an_error_of_ours() -> None:
    command = [sys.executable, "-m", "damage", "--trials", str(TRIALS), "--seed", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5000:]
    assert f"{TRIALS} trials" in done.stdout


@pytest.mark.slow
def test_the_trials_find_a_reader_that_looks_at_no_checksum_of_a_log_block() -> None:
    """What tests the trials: no verdict may take damage that a checksum shows for damage that nobody can see."""
    done = subprocess.run(
        [sys.executable, "-c", UNCHECKED, "--trials", "60", "--seed", str(SEED), "--kind", "log file"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-20_000:] + done.stderr[-5000:]
    assert "scan: wrong rows and no error" in done.stdout


def test_wrong_rows_are_never_right_where_arrow_sees_a_wrong_checksum_in_the_file() -> None:
    """Also in files of other programs, whose headers and footers have no checksum."""
    flipped = Wound("bits flipped", "table/p/x.parquet", "base file")
    assert wrong_with(SPARK, flipped, outcome(["a"])) == []
    seen = outcome(["a"])
    seen.broken_pages = ["table/p/x.parquet"]
    assert wrong_with(SPARK, flipped, seen) == ["scan: wrong rows and no error, though a page's checksum is wrong"]


def test_arrow_sees_the_byte_of_a_page_that_was_changed(tmp_path: Path) -> None:
    """What the verdict above goes by; no decompression finds this byte."""
    file = tmp_path / "x.parquet"
    rows = table_of(("c", 1, "findme"))
    pq.write_table(rows, file, compression="none", use_dictionary=False, write_statistics=False, write_page_checksum=True)
    assert not has_broken_page(file)
    whole = file.read_bytes()
    at = whole.index(b"findme")
    file.write_bytes(whole[:at] + b"F" + whole[at + 1 :])
    assert pq.ParquetFile(file).read()["note"].to_pylist() == ["Findme"]
    assert has_broken_page(file)


def test_no_link_is_looked_through_for_wrong_pages(tmp_path: Path) -> None:
    """One to "/" ended the trial, not the library."""
    (tmp_path / "table" / "p").mkdir(parents=True)
    (tmp_path / "table" / "p" / "file.parquet").touch()
    for name, target in (("folder", "/"), ("file", "file.parquet"), ("nowhere", "nowhere.parquet")):
        (tmp_path / "table" / "p" / f"link to a {name}.parquet").symlink_to(target)
    assert base_files(tmp_path) == ["table/p/file.parquet"]


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
        (Wound("renamed", COMMIT, "commit"), outcome(["a"], NOBODYS), ""),
        (Wound("renamed", COMMIT, "commit"), outcome(["a"], "another finding"), "wrong rows and no error"),
        (Wound("renamed", SLOT.path, "slot"), outcome(["a"], NOBODYS), "wrong rows and no error"),
        (Wound("deleted", COMMIT, "commit"), outcome(["a"], NOBODYS), "wrong rows and no error"),
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


@pytest.mark.parametrize(
    ("template", "wound", "unseen"),
    [
        (OURS, log(block=BlockKind.DELETE), True),
        (OURS, log(block=BlockKind.PARQUET_DATA), False),
        (OURS, log(), False),
        (OURS, log("replaced by another"), False),
        (OURS, log("deleted"), True),
        (OURS, BASE, True),
        (OURS, Wound("deleted", NEWEST, "base file"), False),
        (OURS, Wound("there twice", NEWEST, "base file"), True),
        (OURS, Wound("zeroed", "table/p/x.parquet", "base file"), False),
        (OURS, Wound("deleted", COMMIT, "commit"), False),
        (OURS, Wound("a folder now", DECIDED, "commit"), True),
        (OURS, Wound("zeroed", DECIDED, "commit"), False),
        (OURS, Wound("zeroed", "table/.hoodie/hoodie.properties", "properties"), False),
        (OURS, Wound(FORGED, SLOT.path, "slot"), False),
        (SPARK, log(block=BlockKind.AVRO_DATA), True),
        (SPARK, log(block=BlockKind.PARQUET_DATA), False),
        (SPARK, log(), True),
        (SPARK, Wound("zeroed", "table/p/x.parquet", "base file"), True),
        (SPARK, Wound("deleted", COMMIT, "commit"), True),
        (SPARK, Wound("zeroed", COMMIT, "commit"), False),
        (SPARK, Wound("zeroed", "table/.hoodie/hoodie.properties", "properties"), True),
    ],
)
def test_only_damage_for_which_the_format_has_no_checksum_may_go_unseen(template: Template, wound: Wound, unseen: bool) -> None:
    assert is_unseen(template, wound) == unseen
    assert bool(wrong_with(template, wound, outcome(["a"], "a finding"))) != unseen


def test_an_instant_under_another_valid_name_may_hide_others_and_verify_has_to_see_it() -> None:
    renamed, another = Wound("renamed", COMMIT, "commit"), "no slot reserved this instant: another program wrote to the table"
    assert wrong_with(OURS, renamed, outcome(["a"], another)) == []
    assert wrong_with(OURS, renamed, outcome(["a"], "a finding"))
    assert wrong_with(OURS, renamed, outcome(["a"]))


def test_damage_is_that_of_the_block_in_whose_content_all_of_it_lies() -> None:
    contents = {BlockKind.DELETE: b"a" * 50, BlockKind.PARQUET_DATA: b"b" * 50}
    pieces = [
        piece for kind, content in contents.items() for piece in encode_block(kind, {HeaderKey.INSTANT_TIME: "1"}, [content])
    ]
    file = b"".join(bytes(memoryview(piece)) for piece in pieces)

    def damaged(*places: int) -> bytes:
        return bytes(byte ^ 1 if at in places else byte for at, byte in enumerate(file))

    deletes, parquet = file.index(b"a" * 50), file.index(b"b" * 50)
    assert hit_block(file, damaged(deletes, deletes + 49)) is BlockKind.DELETE
    assert hit_block(file, damaged(parquet)) is BlockKind.PARQUET_DATA
    for elsewhere in (damaged(deletes - 1), damaged(deletes + 50), damaged(deletes, parquet), file, file[:-1]):
        assert hit_block(file, elsewhere) is None


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
