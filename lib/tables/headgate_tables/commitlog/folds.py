"""The whole state of a log as one object, from and to its JSON (rule G1)."""

from collections.abc import Mapping

from headgate_tables.commitlog.bodies import read_texts_by_key
from headgate_tables.commitlog.fields import Fields, Json, map_of, nullable, number, text, texts
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.records import (
    OwnerProcess,
    read_channels,
    read_drop,
    read_grace,
    read_names_by_instant,
    read_plans,
    read_published,
    read_savepoints,
    read_stuck_slices,
    read_times_ahead,
)
from headgate_tables.commitlog.state import LogState


def encode_fold(state: LogState) -> dict[str, Json]:
    """The whole state, as a fold holds it."""
    config: Mapping[str, Json] = {**state.config, "settings": state.settings} if state.settings else state.config
    ends: dict[str, Json] = {"grace": state.grace, "dropped": state.dropped}
    return {
        "n": state.n,
        "last_hash": state.last_hash,
        "epoch": state.epoch,
        "time": state.time,
        "holder": state.owner.encode() if state.owner else None,
        "config": config,
        "reserved": state.reserved,
        "commits": state.commits,
        "dead": state.dead,
        "gone": list(state.gone),
        "channels": state.channels,
        "plans": state.plans,
        "refused": state.refused,
        "savepoints": {instant: saved.encode() for instant, saved in state.savepoints.items()},
        "deleting": state.deleting,
        "archived": state.archived,
        "cleaned": state.cleaned,
        "restored": state.restored,
        "stuck": state.stuck,
        "ahead": state.ahead,
        **{key: value for key, value in ends.items() if value is not None},
    }


def decode_fold(content: Mapping[str, Json], layout: LogLayout) -> LogState:
    """Raises UnfitError."""
    fields = Fields(content)
    n, (config, settings) = fields.required("n", number), fields.required("config", _read_config)
    state = LogState(
        layout,
        n=n,
        last_hash=fields.required("last_hash", text),
        epoch=fields.required("epoch", number),
        time=fields.required("time", text),
        owner=fields.required("holder", nullable(OwnerProcess.decode)),
        config=config,
        settings=settings,
        reserved=list(fields.required("reserved", texts)),
        commits=fields.required("commits", read_texts_by_key),
        dead=fields.required("dead", _read_dead),
        gone=dict.fromkeys(fields.required("gone", texts)),
        channels=fields.required("channels", read_channels),
        plans=fields.required("plans", read_plans),
        refused=fields.required("refused", read_names_by_instant),
        savepoints=fields.required("savepoints", read_savepoints),
        deleting=fields.required("deleting", read_names_by_instant),
        archived=fields.required("archived", text),
        cleaned=fields.required("cleaned", text),
        restored=fields.required("restored", text),
        stuck=fields.optional("stuck", read_stuck_slices) or {},  # younger than format 1, as is ``ahead``
        ahead=fields.optional("ahead", nullable(read_times_ahead)),
        grace=fields.optional("grace", read_grace),
        dropped=fields.optional("dropped", read_drop),
        folded=n,
    )
    fields.refuse_others()
    return state


_read_dead = map_of(nullable(texts))


def _read_config(value: object) -> tuple[dict[str, Json], Mapping[str, str]]:
    """The format's keys, and the settings. Old folds have the whole body of slot 0."""
    fields = Fields(value)
    settings = fields.optional("settings", read_texts_by_key) or {}
    fields.optional("time", text)
    fields.optional("publish", read_published)
    return fields.rest(), settings
