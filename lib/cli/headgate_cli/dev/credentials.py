"""Credentials of a cluster on this machine: made at its first start, found by the programs of this user by its address."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.profiles import PROFILES, Profile, lock_profile
from headgate_cli.dev.certificates import Certificates, certificates_in
from headgate_cli.dev.private import PrivateFolder
from headgate_tables.system import Ids, System

PRINCIPAL = "dev"
"""Of this user's programs: channels belong to it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """``token``: of clients, in ``token_file``, too. ``tokens``: the file by which services know it."""

    certificates: Certificates
    token: str = field(repr=False)
    token_file: Path
    tokens: Path
    cluster_token: str = field(repr=False)

    @property
    def flags(self) -> Sequence[str]:
        """For every service. They name files, and hold no secret."""
        server = self.certificates.server
        files = {"cert": server.cert, "key": server.key, "ca": self.certificates.authority}
        return [*(word for name, path in files.items() for word in (f"--tls-{name}", str(path))), "--tokens", str(self.tokens)]

    @property
    def environment(self) -> Mapping[str, str]:
        """For every service."""
        return {"HEADGATE_CLUSTER_TOKEN": self.cluster_token}

    @property
    def profile(self) -> Profile:
        """For clients."""
        return Profile(self.token, self.certificates.authority.read_text())


def credentials_in(folder: PrivateFolder, system: System) -> Credentials:
    """Those of an earlier run, so that its clients go on, or new ones."""
    certificates = certificates_in(folder, datetime.fromtimestamp(system.clock.now_ms() / 1000, UTC))
    token_file = folder.path / "token"
    try:
        token = token_file.read_text().strip()
    except OSError:
        token = _new_token(system.ids)
        folder.write(token_file.name, token + "\n")
    tokens = folder.write("tokens", f"{PRINCIPAL} {token}\n")
    return Credentials(certificates, token, token_file, tokens, _new_token(system.ids))


@contextlib.contextmanager
def published(profile: Profile, ports: Sequence[int], state: Path) -> Iterator[None]:
    """Inside the block, this user's programs that connect to one of the ports find the profile. It ends with the process."""
    folder = PrivateFolder.below(state, PROFILES)
    with contextlib.ExitStack() as files:
        for port in ports:
            path = folder.write(f"{port}.json", profile.encode())
            files.callback(path.unlink, missing_ok=True)
            lock_profile(files.enter_context(path.open(encoding="utf-8")))
        yield


def _new_token(ids: Ids) -> str:
    return ids.token() + ids.token()
