"""Slots and folds that earlier code has written, every kind in every form: they are read, and written again to the same bytes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.fields import UnfitError
from headgate_tables.commitlog.folds import decode_fold, encode_fold
from headgate_tables.commitlog.slot import decode_slot, seal, unseal
from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from support.log_layout import LOG_LAYOUT

GOLDEN = sorted((Path(__file__).parent / "golden_slots").iterdir())
SLOTS = [path for path in GOLDEN if not path.name.startswith("FOLD")]
FOLDS = [path for path in GOLDEN if path.name.startswith("FOLD")]
MAY_LACK = {"time", "reserved", "min_reader", "min_writer", "deleted", "ahead", "stuck", "freed", "replaces"}
"""Not every slot of a kind has them."""
OTHERS: tuple[Any, ...] = (None, True, 1, "text", ["text"], [1], [[1, "x"]], {"x": 1}, {"x": [1]}, {"x": None})
"""Values of which each key takes some at most."""


def content_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes().partition(b"\n")[2])
    return found


def name_of(path: Path) -> str:
    return path.name


def test_every_kind_is_there() -> None:
    assert {content_of(path)["kind"] for path in SLOTS} == set(SlotKind)


@pytest.mark.parametrize("path", SLOTS, ids=name_of)
def test_a_slot_is_written_again_to_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    slot = decode_slot(data, LOG_LAYOUT, content_of(path)["n"])
    assert slot.kind == path.name.partition("-")[0]
    assert slot.encode() == data


@pytest.mark.parametrize("path", FOLDS, ids=name_of)
def test_a_fold_says_the_same_when_it_is_written_again(path: Path) -> None:
    state = decode_fold(unseal(path.read_bytes(), path.name), LOG_LAYOUT)
    before = content_of(path)
    after = json.loads(json.dumps(encode_fold(state)))
    for ours in ("time", "publish"):  # of slot 0; folds had its whole body once
        before["config"].pop(ours, None)
    assert after == {"ahead": None, "stuck": {}} | before
    assert decode_fold(after, LOG_LAYOUT) == state
    assert state.folded == state.n


def changed(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The slot with each key of its body in turn, and the body to change."""
    for key in content_of(path)["body"]:
        content = content_of(path)
        yield key, content


@pytest.mark.parametrize("path", SLOTS, ids=name_of)
def test_a_slot_with_an_unknown_key_is_of_a_newer_version(path: Path) -> None:
    content = content_of(path)
    if path.name in CREATED:
        return  # its keys are the format's
    content["body"]["of_tomorrow"] = 1
    with pytest.raises(UnsupportedTableError, match=rf"{content['n']:020d}: its key 'body.of_tomorrow' is not known"):
        decode_slot(seal(content), LOG_LAYOUT, content["n"])
    content = content_of(path) | {"of_tomorrow": 1}
    with pytest.raises(UnsupportedTableError, match="'of_tomorrow'"):
        decode_slot(seal(content), LOG_LAYOUT, content["n"])


@pytest.mark.parametrize("path", SLOTS, ids=name_of)
def test_a_slot_without_a_key_is_damaged(path: Path) -> None:
    for key, content in changed(path):
        if (
            key in MAY_LACK
            or (key == "config" and content["kind"] == SlotKind.CONFIG)
            or (path.name in CREATED and key != "publish")
        ):
            continue
        del content["body"][key]
        # SAVEPOINT without `removed` is read as one that saves.
        with pytest.raises((CorruptFileError, UnsupportedTableError), match=rf"{content['n']:020d}.* key 'body\.") as refused:
            decode_slot(seal(content), LOG_LAYOUT, content["n"])
        assert key == "removed" or f"'body.{key}' is missing" in refused.value.message


@pytest.mark.parametrize("path", SLOTS, ids=name_of)
def test_a_slot_with_a_value_of_another_type_is_damaged_and_never_taken_as_something_else(path: Path) -> None:
    for key, content in changed(path):
        if path.name in CREATED and key not in ("publish", "time"):
            continue
        before = content["body"][key]
        taken = 0
        for other in OTHERS:
            content["body"][key] = other
            data = seal(content)
            try:
                slot = decode_slot(data, LOG_LAYOUT, content["n"])
            except CorruptFileError as error:
                named = f"{content['n']:020d} is damaged: its key 'body.{key}" in error.message
            else:
                taken += 1
                named = slot.encode() == data and (key == "entry" or isinstance(other, type(before)))
            assert named, (key, other)
        assert taken <= (4 if key in ("operations", "plans", "config", "entry") else 2), key


@pytest.mark.parametrize("path", FOLDS, ids=name_of)
def test_a_fold_with_a_key_too_many_or_too_few_is_refused(path: Path) -> None:
    for key in content_of(path):
        content = content_of(path)
        del content[key]
        if key in ("stuck", "ahead"):
            decode_fold(content, LOG_LAYOUT)
        else:
            with pytest.raises(UnfitError, match=f"'{key}' is missing"):
                decode_fold(content, LOG_LAYOUT)
    with pytest.raises(UnfitError, match="'of_tomorrow' is not known") as refused:
        decode_fold(content_of(path) | {"of_tomorrow": 1}, LOG_LAYOUT)
    assert refused.value.unknown


def test_a_value_deep_in_a_slot_is_named_by_its_way() -> None:
    content = content_of(next(path for path in SLOTS if path.name.startswith("OFFSETS")))
    content["body"]["channels"] = {"loader": [1, 2, "me", 3], "other": [1, True, "me", 3]}
    with pytest.raises(
        CorruptFileError, match=r"its key 'body\.channels\.other' does not hold a list of incarnation, offset, principal and time"
    ):
        decode_slot(seal(content), LOG_LAYOUT, content["n"])


CREATED = [path.name for path in SLOTS if content_of(path)["n"] == 0]
