"""What a rescale makes of a table's definition, and what Hudi's programs have to know of it. Pure.

Hudi has numbers of buckets by partition since 1.1 (RFC-89): its writers take them from a setting, its readers from the newest
``.hashing_config`` whose instant is not pending (Hudi: PartitionBucketIndexHashingConfig, RegexRuleEngine).
"""

import json
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headgate_tables.commitlog.fields import Json
from headgate_tables.face.bucket_rules import BucketRule, matches
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.definition_values import encode_bucket_rules, encode_groups

_CONFIGS: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_PLAIN: Final = frozenset("_=-/%")
_NOTHING: Final = "(?!)"
"""The expression of a table without rules that had some: Hudi takes no empty one, and keeps reading the folder."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What a rescale makes: ``buckets`` in each partition that ``pattern`` matches, and in those that come; "" matches all."""

    buckets: int
    pattern: str = ""

    def is_about(self, partition: str) -> bool:
        """Whether it changes the partition of this path."""
        return not self.pattern or matches(self.pattern, partition)

    def is_there(self, definition: Definition) -> bool:
        """Whether nothing has to change."""
        if not self.pattern:
            return definition.buckets == self.buckets and not definition.bucket_rules
        return [(pattern, buckets) for pattern, buckets, _ in definition.bucket_rules[:1]] == [(self.pattern, self.buckets)]

    def of(self, definition: Definition, instant: str) -> Definition:
        """The definition from ``instant`` on."""
        if not self.pattern:
            return replace(definition, buckets=self.buckets, rescaled=instant, groups={}, bucket_rules=())
        rule = BucketRule(self.pattern, self.buckets, instant)
        others = (each for each in definition.bucket_rules if each[0] != self.pattern)
        groups = {partition: each for partition, each in definition.groups.items() if not self.is_about(partition)}
        return replace(definition, groups=groups, bucket_rules=(rule, *others))


class Rescale(NamedTuple):
    """What a rescale makes of the partitions that ``scale`` is about, and the definition from its instant on."""

    scale: Scale
    target: Definition


def keys_of(before: Definition, after: Definition) -> dict[str, Json]:
    """The keys of a definition that a rescale changes, for its slot."""
    keys: dict[str, Json] = {"buckets": after.buckets, "rescaled": after.rescaled, "groups": encode_groups(after.groups)}
    if before.bucket_rules or after.bucket_rules:
        keys["bucket_rules"] = encode_bucket_rules(after.bucket_rules)
    return keys


def rescales_of(definition: Definition) -> set[str]:
    """Instants of the rescales that gave its partitions their numbers."""
    return {definition.rescaled, *(since for _, _, since in definition.bucket_rules)} - {""}


def expressions_of(definition: Definition) -> str:
    """The rules as Hudi's setting has them, "" without any."""
    return ";".join(f"^{_java(pattern)}\\z,{buckets}" for pattern, buckets, _ in definition.bucket_rules)


def hashing_path(instant: str) -> str:
    """Of the file that a rescale leaves for Hudi, from the table's root."""
    return f"{_CONFIGS}/{instant}.hashing_config"


def hashing_config(before: Definition, after: Definition, instant: str) -> bytes | None:
    """Its content; None where no partition has another number than the rest, and none had."""
    if not (before.bucket_rules or after.bucket_rules):
        return None
    expressions = expressions_of(after) or f"{_NOTHING},{after.buckets}"
    content = {
        "expressions": expressions,
        "defaultBucketNumber": after.buckets,
        "rule": "regex",
        "version": 1,
        "instant": instant,
    }
    return json.dumps(content, indent=2).encode()


def _java(pattern: str) -> str:
    """The pattern as a regular expression of Java's, without what Hudi splits expressions at."""
    return "".join("[^/]*" if each == "*" else each if _is_plain(each) else _escaped(each) for each in pattern)


def _is_plain(character: str) -> bool:
    return character in _PLAIN or (character.isascii() and character.isalnum())


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
