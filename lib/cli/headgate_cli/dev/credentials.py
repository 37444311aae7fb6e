"""Credentials of a cluster on this machine: made at its first start, found by the programs of this user by its address."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.profiles import PROFILES, Profile, lock_profile
from headgate_cli.credentials.one_principal import access_of_one
from headgate_cli.dev.certificates import Certificates, certificates_in
from headgate_cli.dev.private import PrivateFolder
from headgate_runtime.access.tokens import digest_of, new_token
from headgate_tables.system import System

PRINCIPAL = "dev"
"""Of this user's programs: channels belong to it."""


@dataclass(frozen=True, slots=True)
class DevCredentials:
    """``token``: of clients, in ``token_file``, too. ``access``: the file by which services know it.

    Services know each other by their certificates.
    """

    certificates: Certificates
    token: str = field(repr=False)
    token_file: Path
    access: Path

    def flags(self, service: str) -> Sequence[str]:
        """For a service of this kind. They name files, and hold no secret."""
        server, own = self.certificates.server, self.certificates.services[service]
        files = {"tls-cert": server.cert, "tls-key": server.key, "access": self.access}
        files |= {"cluster-cert": own.cert, "cluster-key": own.key, "cluster-ca": self.certificates.authority}
        return [word for name, path in files.items() for word in (f"--{name}", str(path))]

    @property
    def profile(self) -> Profile:
        """For clients."""
        return Profile(self.token, self.certificates.authority.read_text())


def credentials_in(folder: PrivateFolder, system: System) -> DevCredentials:
    """Those of an earlier run, so that its clients go on, or new ones."""
    certificates = certificates_in(folder, datetime.fromtimestamp(system.clock.now_ms() / 1000, UTC))
    token_file = folder.path / "token"
    try:
        token = token_file.read_text().strip()
    except OSError:
        token = new_token(system.ids)
        folder.write(token_file.name, token + "\n")
    access = folder.write("access.toml", access_of_one(PRINCIPAL, digest_of(token)))
    return DevCredentials(certificates, token, token_file, access)


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
