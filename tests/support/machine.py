"""A machine that runs the services of a compose file as Docker does: each has an address, names of the others, its volumes."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.image import Image, first_process, kill_container
from support.processes import Process

_NET = "10.88.0"


class Machine:
    """``services``: as ``support.compose.services`` returns them. ``images``: by the beginning of their names.

    Everything lies in network namespaces of its own, so no port of this machine is taken. Root alone can make these.
    """

    def __init__(self, folder: Path, services: Mapping[str, Any], images: Mapping[str, Image]) -> None:
        self._folder, self._services, self._images = folder, services, images
        self._ends = ExitStack()
        self.running: dict[str, Process] = {}
        self.addresses = {name: f"{_NET}.{number}" for number, name in enumerate(services, 2)}

    def __enter__(self) -> Self:
        (self._folder / "volumes").mkdir(parents=True)
        (self._folder / "logs").mkdir()
        hosts = [f"{address} {name}" for name, address in self.addresses.items()]
        (self._folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")
        self._network = self._namespace()
        for command in ("link add br0 type bridge", f"addr add {_NET}.1/24 dev br0", "link set br0 up"):
            self._inside(self._network, "ip", *command.split())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            print(*(part.tail(30) for part in self.running.values()), sep="\n")
        self._ends.close()

    def start(self, name: str) -> Process:
        """Starts a service; does not wait for anything."""
        service = self._services[name]
        image = self._image(service["image"])
        command = image.command(
            [*(service.get("command") or [])],
            entrypoint=[*(service.get("entrypoint") or [image.config["Cmd"][0]])],
            env=service.get("environment") or {},
            mounts={self._folder / "hosts": "/etc/hosts", **self._mounts(service)},
        )
        space = self._namespace()
        self._connect(space, name)
        part = Process(name, [*_entering(space), *command], self._folder / "logs" / f"{name}.log")
        self._ends.callback(kill_container, part)
        self.running[name] = part
        return part

    def run(self, name: str) -> None:
        """Starts a service that ends by itself, and waits for that."""
        part = self.start(name)
        part.expect_end()
        assert part.wait_end() == 0, part.tail()

    def volume(self, name: str) -> Path:
        """Where its files are here."""
        return self._folder / "volumes" / name

    def on_machine(self, command: Sequence[str]) -> list[str]:
        """Runs a program of the machine itself, outside of containers."""
        return [*_entering(self._network), *command]

    def pid(self, name: str) -> int:
        """Of the container's process 1, for signals."""
        return first_process(self.running[name])

    def _image(self, name: str) -> Image:
        [found] = [image for beginning, image in self._images.items() if name.startswith(beginning)]
        return found

    def _mounts(self, service: Mapping[str, Any]) -> dict[Path, str]:
        mounts = {}
        for each in service.get("volumes", []):
            source = Path(each["source"])
            if each["type"] == "volume":
                source = self.volume(each["source"])
                if not source.exists():  # as Docker does where the image has that folder: its owner's
                    source.mkdir()
                    os.chown(source, 10001, 10001)
                source /= each.get("volume", {}).get("subpath", "")
            mounts[source] = each["target"]
        return mounts

    def _namespace(self) -> int:
        """The id of a process that keeps a new network namespace."""
        command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo there && exec sleep infinity"]
        keeper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._ends.callback(keeper.wait)
        self._ends.callback(keeper.kill)
        assert keeper.stdout is not None
        with keeper.stdout:
            assert keeper.stdout.readline() == "there\n"
        return keeper.pid

    def _connect(self, space: int, name: str) -> None:
        address = self.addresses[name]
        outside = f"v{address.rpartition('.')[2]}"
        self._inside(self._network, "ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", str(space))
        self._inside(self._network, "ip", "link", "set", outside, "master", "br0", "up")
        self._inside(space, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        self._inside(space, "ip", "link", "set", "eth0", "up")

    def _inside(self, space: int, *command: str) -> None:
        subprocess.run([*_entering(space), *command], check=True)


def _entering(space: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{space}/ns/net"]
