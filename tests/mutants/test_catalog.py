"""The catalog fits the code: what a mutant replaces is there, and its tests are."""

from pathlib import Path

import pytest

from mutants.catalog import Mutant, catalog

ROOT = Path(__file__).parents[2]
ALL = catalog()


def test_mutants_have_names_of_their_own() -> None:
    assert len({str(mutant) for mutant in ALL}) == len(ALL) > 0


@pytest.mark.parametrize("mutant", ALL, ids=str)
def test_a_mutant_replaces_text_that_is_there_once_and_names_tests_that_are_there(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.applied_to(source) != source
    compile(mutant.applied_to(source), mutant.file, "exec")  # code that cannot be read fails every test, whatever it guards
    assert mutant.tests
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test
