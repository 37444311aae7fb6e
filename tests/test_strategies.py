"""Random tests that CI runs draw the same examples in each run, so that a change is judged and not a chance."""

import subprocess
import sys

import pytest

from support.strategies import LONG

PROGRAM = """
import {module}
from hypothesis import given, strategies as st
from support.strategies import effort

drawn = []

@effort(300)
@given(st.integers() | st.text() | st.binary() | st.floats())
def draw(value):
    drawn.append(repr(value))

draw()
print(drawn)
"""


@pytest.mark.skipif(LONG, reason="draws other examples each time")
def test_examples_do_not_depend_on_the_modules_that_are_loaded() -> None:
    alone, beside_others = (
        subprocess.run([sys.executable, "-c", PROGRAM.format(module=module)], capture_output=True, check=True, text=True).stdout
        for module in ("os", "support.any_values")
    )
    assert alone == beside_others
