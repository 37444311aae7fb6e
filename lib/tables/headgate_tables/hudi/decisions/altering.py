"""Another schema of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.bodies import Effects, ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, Json, json_map, text
from headgate_tables.commitlog.records import EncodedFile, read_published


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered(ServiceBody):
    """From now on the format's keys in ``config`` say what the table's columns are (rule C7). ``instant``: of an empty commit,
    which says the same to readers of the timeline.
    """

    KIND = SlotKind.ALTER

    instant: str
    completion: str
    config: Mapping[str, Json]
    publish: Sequence[EncodedFile]

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, publish=self.publish)

    def apply(self, facts: LogFacts) -> None:
        """Savepoints keep what the keys were, for a restore to them."""
        facts.keep_in_savepoints(self.config)
        facts.complete(self.instant, self.completion)
        facts.redefine(self.config)

    @classmethod
    def decode(cls, fields: Fields) -> "Altered":
        """Raises UnfitError."""
        return cls(
            instant=fields.required("instant", text),
            completion=fields.required("completion", text),
            config=fields.required("config", json_map),
            publish=fields.required("publish", read_published),
            **common(fields),
        )
