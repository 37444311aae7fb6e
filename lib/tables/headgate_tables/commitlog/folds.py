"""The whole state of a log as one object, from and to its JSON (rule G1)."""

from collections.abc import Mapping

from headgate_tables.commitlog.bodies import read_texts_by_key
from headgate_tables.commitlog.fields import Fields, Json, map_of, nullable, number, text, texts
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.records import Holder, read_ahead, read_channels, read_names_by_instant, read_published
from headgate_tables.commitlog.service_bodies import read_plans, read_saved, read_stuck_slices
from headgate_tables.commitlog.state import LogState


def encode_fold(state: LogState) -> dict[str, Json]:
    """The whole state, as a fold holds it."""
    config: Mapping[str, Json] = {**state.config, "settings": state.settings} if state.settings else state.config
    return {
        "n": state.n,
        "last_hash": state.last_hash,
        "epoch": state.epoch,
        "time": state.time,
        "holder": state.holder.encode() if state.holder else None,
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
    }


def decode_fold(content: Mapping[str, Json], layout: LogLayout) -> LogState:
    """Raises UnfitError."""
    fields = Fields(content)
    n, (config, settings) = fields.take("n", number), fields.take("config", _read_config)
    state = LogState(
        layout,
        n=n,
        last_hash=fields.take("last_hash", text),
        epoch=fields.take("epoch", number),
        time=fields.take("time", text),
        holder=fields.take("holder", nullable(Holder.decode)),
        config=config,
        settings=settings,
        reserved=list(fields.take("reserved", texts)),
        commits=fields.take("commits", read_texts_by_key),
        dead=fields.take("dead", _read_dead),
        gone=dict.fromkeys(fields.take("gone", texts)),
        channels=fields.take("channels", read_channels),
        plans=fields.take("plans", read_plans),
        refused=fields.take("refused", read_names_by_instant),
        savepoints=fields.take("savepoints", read_saved),
        deleting=fields.take("deleting", read_names_by_instant),
        archived=fields.take("archived", text),
        cleaned=fields.take("cleaned", text),
        restored=fields.take("restored", text),
        stuck=fields.maybe("stuck", read_stuck_slices) or {},  # younger than format 1, as is ``ahead``
        ahead=fields.maybe("ahead", nullable(read_ahead)),
        folded=n,
    )
    fields.end()
    return state


_read_dead = map_of(nullable(texts))


def _read_config(value: object) -> tuple[dict[str, Json], Mapping[str, str]]:
    """The format's keys, and the settings. Old folds have the whole body of slot 0."""
    fields = Fields(value)
    settings = fields.maybe("settings", read_texts_by_key) or {}
    fields.maybe("time", text)
    fields.maybe("publish", read_published)
    return fields.rest(), settings
