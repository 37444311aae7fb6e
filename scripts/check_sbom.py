"""Compares a CycloneDX SBOM with the lock that it was made from: check_sbom.py LOCK SBOM."""

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

Package = tuple[str, str]
"""Name and version."""


def locked(text: str) -> Mapping[Package, frozenset[str]]:
    """The packages of a lock with the SHA-256 of their files."""
    entries = [entry for entry in re.split(r"\n(?! )", text) if entry.strip()]
    found: dict[Package, frozenset[str]] = {}
    for entry in entries:
        pin = _PIN.match(entry)
        if pin is None:
            raise ValueError(f"no pinned package: {entry.splitlines()[0]}")
        found[pin[1], pin[2]] = frozenset(_HASH.findall(entry))
    return found


def listed(sbom: Mapping[str, Any]) -> Mapping[Package, frozenset[str]]:
    """The components of an SBOM that have a Package URL, with the SHA-256 of their files."""
    return {
        (component["name"], component["version"]): frozenset(_hashes(component))
        for component in sbom["components"]
        if component.get("purl", "").startswith("pkg:pypi/")
    }


def problems(lock: str, sbom: Mapping[str, Any]) -> Sequence[str]:
    """What one has and the other has not, a sentence each."""
    wanted, found = locked(lock), listed(sbom)
    sentences = _names("the SBOM does not list", wanted.keys() - found.keys())
    sentences += _names("the lock does not hold", found.keys() - wanted.keys())
    both = wanted.keys() & found.keys()
    return sentences + _names(
        "hashes differ from the lock's:", [each for each in both if not wanted[each] or wanted[each] != found[each]]
    )


def _hashes(component: Mapping[str, Any]) -> Sequence[str]:
    entries = [
        *component.get("hashes", ()),
        *(each for link in component.get("externalReferences", ()) for each in link.get("hashes", ())),
    ]
    return [each["content"] for each in entries if each["alg"] == "SHA-256"]


def _names(what: str, packages: Collection[Package]) -> list[str]:
    return [f"{what} {name} {version}" for name, version in sorted(packages)]


if __name__ == "__main__":
    lock_path, sbom_path = sys.argv[1:]
    sys.exit("\n".join(problems(Path(lock_path).read_text(), json.loads(Path(sbom_path).read_text()))) or 0)
