"""Writes the Python code of proto/: `python scripts/generate_proto.py [FOLDER]`. The pinned compiler sets its floor."""

import sys
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

SOURCES = Path(__file__).resolve().parent.parent / "proto"


def generate(target: Path) -> None:
    """The modules and stubs of every .proto under ``proto/``, laid out the same way under ``target``."""
    # protoc looks for plugins on PATH, where an environment that was not activated has none.
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin={scripts / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    outputs = [f"--{kind}_out={target}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    files = sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.proto"))
    well_known = resources.files("grpc_tools") / "_proto"
    status = protoc.main(["protoc", f"-I{SOURCES}", f"-I{well_known}", *plugins, *outputs, *files])
    if status != 0:
        raise SystemExit(status)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES)
