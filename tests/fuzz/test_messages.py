"""What the fuzzer draws: repeatable, every field of every message of the contracts, and no value that protobuf refuses."""

from collections import Counter
from random import Random

import pytest
from google.protobuf.descriptor import Descriptor

from fuzz.calls import VOCABULARY
from fuzz.messages import draw
from support.methods import METHODS

REQUESTS = sorted({method.input_type for _, method in METHODS}, key=lambda kind: kind.full_name)


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.name)
def test_the_same_seed_draws_the_same_and_every_message_survives_the_wire(kind: Descriptor) -> None:
    for seed in range(50):
        drawn = draw(kind, Random(seed), VOCABULARY)
        assert drawn.SerializeToString(deterministic=True) == draw(kind, Random(seed), VOCABULARY).SerializeToString(
            deterministic=True
        )
        assert type(drawn).FromString(drawn.SerializeToString()) is not None


@pytest.mark.slow
@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.name)
def test_every_field_is_set_sooner_or_later(kind: Descriptor) -> None:
    random, seen = Random(1), Counter[str]()
    for _ in range(400):
        seen.update(field.name for field, _ in draw(kind, random, VOCABULARY).ListFields())
    assert set(seen) == {field.name for field in kind.fields}
