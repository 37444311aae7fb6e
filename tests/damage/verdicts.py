"""What is wrong with the outcome of a trial: pure."""

from __future__ import annotations

from collections.abc import Iterator

from damage.templates import Template
from damage.trial import MOST_BYTES, MOST_S, Outcome
from damage.wounds import BYTES, FORGED, Wound


def wrong_with(template: Template, wound: Wound, outcome: Outcome) -> list[str]:
    """Empty when every step gave the right rows or an error of ours, in time, in little memory and quietly."""
    return [*_process(template, wound, outcome), *_rows(template, wound, outcome)]


def _process(template: Template, wound: Wound, outcome: Outcome) -> Iterator[str]:
    if outcome.ended:
        yield f"the process {outcome.ended}"
    if outcome.printed and not _is_known_panic(outcome.printed, template, wound):
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


def _is_known_panic(printed: str, template: Template, wound: Wound) -> bool:
    """Polars, which decodes Avro blocks of other programs, prints where it panicked; the library gives an error of its own."""
    return not template.vouched and wound.kind == "log file" and "panicked at" in printed


def _rows(template: Template, wound: Wound, outcome: Outcome) -> Iterator[str]:
    unseen = is_unseen(template, wound)
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
        if not unseen:
            yield f"{name}: wrong rows and no error, {_difference(step.rows, right[-1])}"
        elif not seen and template.vouched and wound.how != FORGED:
            yield f"{name}: wrong rows, and verify sees nothing"


def is_unseen(template: Template, wound: Wound) -> bool:
    """Whether this is damage that a scan cannot see; docs/operations.md lists what that is."""
    if not template.vouched or wound.how == FORGED:
        return True
    if wound.kind not in ("base file", "log file"):
        return False
    return wound.how in _OF_WHOLE_FILES or (wound.kind == "log file" and wound.how in BYTES)


_OF_WHOLE_FILES = ("swapped", "replaced by another", "deleted", "renamed", "there twice", "a folder now")
"""Which data files there are, only the folders say, once the slots that name them are folded."""


def _difference(found: list[str], right: list[str]) -> str:
    missing, more = set(right) - set(found), set(found) - set(right)
    return f"{len(found)} rows; missing {sorted(missing)[:2]}, too many {sorted(more)[:2]}"
