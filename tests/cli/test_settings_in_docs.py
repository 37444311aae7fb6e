"""What docs/operations.md says of settings is what tables do."""

import re
from pathlib import Path

from headgate_tables.face.settings import SETTINGS, TableSettings

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
ROW = re.compile(r"^\| `(h[\w.]+\.[\w.]+)` \| ([\d.]+) ?(\w*) \|", re.MULTILINE)
UNITS = {"": 1, "s": 1, "MiB": 1 << 20, "GiB": 1 << 30}


def test_the_defaults_that_the_manual_names_are_those_of_a_new_table() -> None:
    told = {key: float(number) * UNITS[unit] for key, number, unit in ROW.findall(OPERATIONS.read_text())}
    defaults = TableSettings().to_texts()
    assert len(told) > 10
    assert told == {key: float(defaults[key]) for key in told}


def test_the_manual_names_no_setting_that_there_is_not() -> None:
    named = set(re.findall(r"`((?:hoodie|headgate)(?:\.[a-z]+)+)[`=]", OPERATIONS.read_text()))
    named = {key for key in named if not key.startswith("hoodie.write.")}  # options of Spark's writers
    assert len(named) > 10
    assert named <= {setting.key for setting in SETTINGS.values()}
