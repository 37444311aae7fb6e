"""What is wrong with the outcome of a trial: pure."""

from __future__ import annotations

from collections.abc import Iterator

from damage.templates import Template
from damage.trial import MOST_BYTES, MOST_S, Outcome
from damage.wounds import BYTES, Wound
from headgate_tables.hudi.log.block import BlockKind


def wrong_with(template: Template, wound: Wound, outcome: Outcome) -> list[str]:
    """Empty when every step gave the right rows or an error of ours, in time, in little memory and quietly."""
    return [*_process(template, wound, outcome), *_rows(template, wound, outcome)]


def _process(template: Template, wound: Wound, outcome: Outcome) -> Iterator[str]:
    if outcome.ended:
        yield f"the process {outcome.ended}"
    if outcome.printed:
        yield f"it printed {outcome.printed[-3000:]}"
    if outcome.peak > MOST_BYTES:
        yield f"it took {outcome.peak >> 20} MiB"
    for step in outcome.steps:
        if step.raw:
            yield f"{step.name}: {step.raw[-3000:]}"
        if step.seconds > MOST_S:
            yield f"{step.name} took {step.seconds:.1f} s"
        if len(step.message) > 3000:
            yield f"{step.name}: a message of {len(step.message)} characters"


def _rows(template: Template, wound: Wound, outcome: Outcome) -> Iterator[str]:
    unseen = is_unseen(template, wound) or _looks_like_another_programs(wound, outcome)
    verified = outcome.step("verify")
    seen = bool(outcome.found) or (verified is not None and bool(verified.error))
    for name, right in (
        ("scan", [template.right]),
        ("past", [template.saved[1] if template.saved else []]),
        ("scan again", [template.right, template.written]),
    ):
        step = outcome.step(name)
        if step is None or step.rows is None or step.rows in right:
            continue
        if wound.path in outcome.broken_pages:
            yield f"{name}: wrong rows and no error, though a page's checksum is wrong"
        elif not unseen:
            yield f"{name}: wrong rows and no error, {_difference(step.rows, right[-1])}"
        elif not seen and template.vouched:
            yield f"{name}: wrong rows, and verify sees nothing"


def is_unseen(template: Template, wound: Wound) -> bool:
    """Whether rows may be wrong without an error; docs/operations.md lists the same kinds of damage, and says why.

    A forged slot is none of them: it has another value in one place, which fits to nothing else.
    """
    ours = template.batch is not None  # it has slots
    if wound.how in BYTES:
        if wound.kind == "log file":
            return _has_no_checksum(template, wound.block)
        if wound.kind == "base file":
            return not template.vouched  # headers of pages and the footer have no checksum; what is in the pages has one
        return wound.kind == "properties" and not ours
    if wound.kind not in ("base file", "log file"):
        return wound.kind in _TIMELINE and (not ours or (wound.how in _AMONG_NAMES and wound.path in template.newest))
    if wound.how in _AMONG_NAMES:
        return wound.path not in template.named
    return wound.how == "there twice" or (wound.how in _IN_PLACES and not (template.vouched and wound.kind == "log file"))


def _looks_like_another_programs(wound: Wound, outcome: Outcome) -> bool:
    """An instant under a name that no slot decided: another program might have made it, and taken others back."""
    renamed = wound.how == "renamed" and wound.kind in _TIMELINE
    return renamed and any("no slot reserved this instant" in found for found in outcome.found)


def _has_no_checksum(template: Template, block: BlockKind | None) -> bool:
    """Of the frame of another program's block, too: no slot says which instant it has to carry."""
    return block is BlockKind.DELETE or (not template.vouched and block is not BlockKind.PARQUET_DATA)


_AMONG_NAMES = ("deleted", "renamed", "a folder now")
"""Which data files there are, only the folders say, once the slots that name them are folded."""
_IN_PLACES = ("swapped", "replaced by another")
"""A block of a log of ours carries its file's instant."""
_TIMELINE = ("commit", "clean", "savepoint", "plan", "pending instant", "history", "history's manifest")
"""Which instants there are, only the names of files say, where no slot does."""


def _difference(found: list[str], right: list[str]) -> str:
    missing, more = set(right) - set(found), set(found) - set(right)
    return f"{len(found)} rows; missing {sorted(missing)[:2]}, too many {sorted(more)[:2]}"
