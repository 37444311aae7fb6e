"""Which cases of a parametrised test belong to the fast tier (`./task test`); `./task test --all` runs all of them."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(fast: Iterable[object], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters, slow except those in ``fast``, by their text. Raises ValueError when one of these is no case."""
    cases = list(cases)
    named = {str(each) for each in fast}
    if strangers := named - {str(case) for case in cases}:
        raise ValueError(f"no cases: {sorted(strangers)}")
    return [pytest.param(case, marks=() if str(case) in named else pytest.mark.slow) for case in cases]
