"""The image of deploy/docker, built and unpacked, and programs that run in it as containers do, on this machine's network."""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes import Process

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
BUILD = "HEADGATE_IMAGE_BUILD"
"""A command that builds an image: it gets CONTEXT NAME:TAG and options of `docker build`, and prints the path of an archive."""
REVISION = "0123456789abcdef"
_ENTER = """set -e
root=$1; user=$2; folder=$3; shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done
shift
exec setpriv --no-new-privs chroot --groups= --userspec="$user" "$root" /usr/bin/env -i -C "$folder" "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """``root``: its files, unpacked. ``config``: what its archive says of user, environment and commands."""

    root: Path
    config: Mapping[str, Any]

    def command(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        entrypoint: Sequence[str] | None = None,
        mounts: Mapping[Path, str] | None = None,
    ) -> list[str]:
        """Runs it as a container would: process 1, its user, no capabilities, a read-only root, an empty /tmp.

        ``mounts``: folders and files here and where they lie there.
        """
        for source, target in (mounts or {}).items():
            _mount_point(self.root / target.lstrip("/"), source)
        variables = [*self.config["Env"], *(f"{name}={value}" for name, value in (env or {}).items())]
        argv = [*(self.config["Entrypoint"] if entrypoint is None else entrypoint), *arguments]
        binds = [str(word) for pair in (mounts or {}).items() for word in pair]
        isolated = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        where = [str(self.root), self.config["User"], self.config.get("WorkingDir", "/")]
        return [*isolated, "sh", "-c", _ENTER, "enter", *where, *binds, "--", *variables, *argv]

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """To its end, which is to come within a minute."""
        return subprocess.run(self.command(arguments, **options), capture_output=True, text=True, check=False, timeout=60)


def _mount_point(path: Path, source: Path) -> None:
    """Made if it is not there, as programs that run containers do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        path.mkdir(exist_ok=True)
    elif not path.exists():
        path.touch()


def first_process(container: Process) -> int:
    """The id, here, of the program that is process 1 there."""
    [child] = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
    return int(child)


def kill_container(container: Process) -> None:
    """Its process 1 and with it all of its processes: they changed their user, so they do not end with what started them."""
    if container.is_alive:
        container.expect_end()
        os.kill(first_process(container), signal.SIGKILL)
    container.kill()


def built_image(factory: pytest.TempPathFactory) -> Image:
    """Ours, built once for all processes of a test run. Skips without a builder."""
    arguments = [str(ROOT), "headgate:test", "-f", str(DOCKERFILE), "--build-arg", f"REVISION={REVISION}"]
    return _once(factory, "image", lambda: [*shlex.split(os.environ[BUILD]), *arguments])


def support_image(factory: pytest.TempPathFactory, name: str) -> Image:
    """One of tests/k8s/images, in the same way."""
    script = ROOT / "tests" / "k8s" / "images" / "build.sh"
    return _once(factory, name, lambda: ["bash", str(script), name])


def _once(factory: pytest.TempPathFactory, name: str, command: Callable[[], Sequence[str]]) -> Image:
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / name
    if BUILD not in os.environ:
        pytest.skip(f"no image was built: {BUILD} names no command that builds one")
    if os.geteuid() != 0:
        pytest.skip("only root unpacks an image and runs what is in it")
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "config.json").exists():
            _build(folder, command())
    return Image(folder / "root", json.loads((folder / "config.json").read_text()))


def _build(folder: Path, command: Sequence[str]) -> None:
    archive = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
    shutil.rmtree(folder, ignore_errors=True)
    config = unpack(archive, folder / "root")
    archive.unlink()
    (folder / "config.json").write_text(json.dumps(config))


def unpack(archive: Path, root: Path) -> Any:
    """Puts the layers of an archive of one image over each other in ``root``. Returns the image's settings."""
    root.mkdir(parents=True)
    with tarfile.open(archive) as image:
        [manifest] = json.loads(_file(image, "manifest.json").read())
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=_file(image, layer)) as files:
                _lay(files, root)
        return json.loads(_file(image, manifest["Config"]).read())["config"]


def _lay(files: tarfile.TarFile, root: Path) -> None:
    for member in files:
        path = Path(member.name)
        if path.name == ".wh..wh..opq":
            shutil.rmtree(root / path.parent)
            (root / path.parent).mkdir()
        elif path.name.startswith(".wh."):
            gone = root / path.with_name(path.name.removeprefix(".wh."))
            shutil.rmtree(gone) if gone.is_dir() and not gone.is_symlink() else gone.unlink(missing_ok=True)
        else:
            files.extract(member, root, filter="fully_trusted")


def _file(image: tarfile.TarFile, name: str) -> Any:
    found = image.extractfile(name)
    assert found is not None, name
    return found


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Each instruction and its arguments; comments are left out, continued lines joined."""
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", dockerfile))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())]
