"""What users install: its lock holds all of it, at the versions that tests ran with, and the check of the SBOM is exact."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest

from scripts.check_sbom import locked, problems

ROOT = Path(__file__).parent.parent
RUNTIME = (ROOT / "requirements-runtime.lock").read_text()
MEMBERS = ("headgate", "headgate-cli", "headgate-compactor", "headgate-coordinator", "headgate-runtime", "headgate-tables")


def needed(package: str, seen: set[str]) -> Iterator[str]:
    """All that the installed package needs on this machine, extras left out."""
    for line in requires(package) or ():
        name = re.match(r"[A-Za-z0-9._-]+", line)
        assert name
        found = re.sub(r"[-_.]+", "-", name[0]).lower()
        if ";" in line or found in seen:
            continue
        seen.add(found)
        yield found
        yield from needed(found, seen)


def test_the_lock_of_the_runtime_holds_all_that_services_commands_and_libraries_need() -> None:
    seen: set[str] = set()
    names = {name for member in MEMBERS for name in needed(member, seen)}
    assert {"grpcio", "obstore", "pydantic-core", "redis", "cryptography"} <= names
    missing = {name for name in names if not name.startswith("headgate")} - {name for name, _ in locked(RUNTIME)}
    assert not missing, "run scripts/lock.sh"


def test_what_users_install_is_what_was_tested() -> None:
    tested = locked((ROOT / "requirements.lock").read_text())
    for package, hashes in locked(RUNTIME).items():
        assert hashes
        assert tested[package] == hashes


def sbom(lock: str) -> str:
    components = [
        {
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "externalReferences": [{"hashes": [{"alg": "SHA-256", "content": each} for each in hashes]}],
        }
        for (name, version), hashes in locked(lock).items()
    ]
    return json.dumps({"components": components})


def test_an_sbom_that_is_the_lock_passes() -> None:
    assert len(locked(RUNTIME)) == RUNTIME.count("==")
    assert not problems(RUNTIME, json.loads(sbom(RUNTIME)))


@pytest.mark.parametrize(
    ("pattern", "instead", "said"),
    [
        (r"redis==[^\s]+", "redis==0.1", ["the SBOM does not list redis 8", "the lock does not hold redis 0.1"]),
        (r"(?m)^redis==(.+\\\n)+.+\n", "", ["the SBOM does not list redis"]),
        (r"(?<=sha256:)[0-9a-f]", "g", ["hashes differ from the lock's"]),
    ],
    ids=["another version", "a package less", "other files"],
)
def test_an_sbom_that_differs_from_the_lock_is_refused(pattern: str, instead: str, said: list[str]) -> None:
    other = re.sub(pattern, instead, RUNTIME, count=0 if instead == "g" else 1)
    assert other != RUNTIME
    found = problems(RUNTIME, json.loads(sbom(other)))
    assert all(any(line.startswith(words) for line in found) for words in said)
