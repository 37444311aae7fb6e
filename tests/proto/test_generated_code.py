import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "proto"


def generated(folder: Path) -> dict[str, str]:
    """Path under ``folder`` to content, of all that the compiler writes."""
    return {
        str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*_pb2*.py*") if path.suffix in (".py", ".pyi")
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    target = tmp_path_factory.mktemp("generated")
    subprocess.run([sys.executable, ROOT / "scripts/generate_proto.py", target], check=True, capture_output=True, cwd=ROOT)
    return generated(target)


def test_the_committed_code_is_what_the_pinned_compiler_makes_of_the_contracts(fresh: dict[str, str]) -> None:
    committed = generated(SOURCES)
    assert sorted(committed) == sorted(fresh)
    stale = [path for path, content in fresh.items() if committed[path] != content]
    assert not stale, f"run scripts/generate_proto.py; stale: {stale}"


def test_every_contract_has_code(fresh: dict[str, str]) -> None:
    modules = {f"{path.relative_to(SOURCES).with_suffix('')}_pb2.py" for path in SOURCES.rglob("*.proto")}
    assert len(modules) >= 5
    assert modules <= set(fresh)
