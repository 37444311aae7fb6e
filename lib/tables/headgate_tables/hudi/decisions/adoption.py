"""What another program did to the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.bodies import Effects, ServiceBody, SlotKind, common, read_texts_by_key
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, Json, json_map, text, texts
from headgate_tables.commitlog.records import Savepoint, read_names_by_instant, read_plans, read_savepoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(ServiceBody):
    """What another program did, see ``apply``. ``config``: the format's keys that change."""

    KIND = SlotKind.ADOPT

    completed: Mapping[str, str]
    removed: Sequence[str]
    dead: Mapping[str, Sequence[str]]
    plans: Mapping[str, Sequence[Json]]
    refused: Mapping[str, Sequence[str]]
    savepoints: Mapping[str, Savepoint]
    unsaved: Sequence[str]
    archived: str
    cleaned: str
    config: Mapping[str, Json]
    names: Sequence[str]

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot."""
        return {**ServiceBody.encode(self), "savepoints": {time: saved.encode() for time, saved in self.savepoints.items()}}

    @property
    def effects(self) -> Effects:
        return Effects(names=self.names)

    def apply(self, facts: LogFacts) -> None:
        """What another program did becomes ours (rule F1): its instants, its savepoints, the plans it left or finished, what it
        rolled back or archived, its file groups and schema. ``dead``: instants that never complete, and data that may come late.
        """
        for instant in [*self.removed, *self.dead]:
            facts.commits.pop(instant, None)
            facts.plans.pop(instant, None)
            facts.refused.pop(instant, None)
        facts.gone.update(dict.fromkeys(self.removed))
        facts.dead.update(self.dead)
        for instant in self.completed:
            for known in (facts.plans, facts.dead, facts.gone):
                known.pop(instant, None)
        facts.commits.update(self.completed)
        facts.plans.update(self.plans)
        facts.refused.update(self.refused)
        for instant in self.unsaved:
            facts.savepoints.pop(instant, None)
        facts.savepoints.update(self.savepoints)
        # Data first: a file whose instant has left the timeline would pass for an archived one (hazard H9).
        for first in (True, False):
            names = [name for name in self.names if facts.layout.is_data(name) is first]
            if names:
                facts.deleting[f"adopt {self.time} {'data' if first else 'timeline'}"] = names
        facts.redefine(self.config)
        facts.archive_until(max(facts.archived, self.archived))
        facts.cleaned = max(facts.cleaned, self.cleaned)

    @classmethod
    def decode(cls, fields: Fields) -> "Adopt":
        return cls(
            completed=fields.required("completed", read_texts_by_key),
            removed=fields.required("removed", texts),
            dead=fields.required("dead", read_names_by_instant),
            plans=fields.required("plans", read_plans),
            refused=fields.required("refused", read_names_by_instant),
            savepoints=fields.required("savepoints", read_savepoints),
            unsaved=fields.required("unsaved", texts),
            archived=fields.required("archived", text),
            cleaned=fields.required("cleaned", text),
            config=fields.required("config", json_map),
            names=fields.required("names", texts),
            **common(fields),
        )
