"""What `headgate dev` says of its processes, for people or as JSON."""

import contextlib
from pathlib import Path
from typing import Final

from headgate_cli.dev.processes import Cluster
from headgate_cli.dev.supervisor import EventFields, exit_text
from headgate_cli.output import Output, Record

DEFAULT_PORT: Final = 7070
"""To which commands and programs connect without an address."""


class EventPrinter:
    """Prints the supervisor's events. Where stdout takes them no more, the cluster goes on, and stops in order: the Ctrl-C that
    stops `headgate dev | tee log` ends tee at once.
    """

    def __init__(self, output: Output, cluster: Cluster, logs: Path | None) -> None:
        self._output = output
        self._cluster = cluster
        self._logs = logs
        self._died: set[str] = set()

    def event(self, name: str, fields: EventFields) -> None:
        record = {"event": name, **fields}
        process = f"{fields.get('name')} (pid {fields.get('pid')})"
        if name == "died":
            self._died.add(fields["name"])
            text = f"{process} died: {exit_text(fields['exit'])}. Restart in {fields['restart_in_s']:g} s."
            self._print(record, text, fg="yellow")
        elif name == "serving" and fields["name"] in self._died:
            self._print(record, f"{process} serves again.", fg="green")
        elif name == "stopping":
            self._print(record, "Stopping: writers commit their rows, then the rest stops. Ctrl-C again kills all.")
        elif name == "killed":
            self._print(record, f"{process} did not stop within {fields['after_s']:g} s and was killed.", fg="yellow")
        else:
            self._print(record)

    def ready(self) -> None:
        cluster = self._cluster
        connect, credentials = f"localhost:{cluster.port}", cluster.credentials
        record = {"event": "ready", "connect": connect, "store": cluster.store, "logs": str(self._logs or "")}
        self._print(record, f"Headgate is ready at {connect}", fg="green", bold=True)
        self._print(
            {},
            f"  tables  {cluster.store}\n  logs    {self._logs or 'here'}\n"
            f"  access  this user's programs find it by themselves; others need --token-file {credentials.token_file} "
            f"--tls-ca {credentials.certificates.authority}\n\n"
            f'  Python  import headgate; hg = headgate.connect("{connect}")\n'
            f"{self._exported(connect)}"
            f"  shell   headgate load FILE.parquet --table NAME --create --key id\n"
            f"          headgate status --watch\n\n"
            "Ctrl-C stops the cluster; the tables stay.",
        )

    def _exported(self, connect: str) -> str:
        """Commands find the default port without it."""
        return "" if self._cluster.port == DEFAULT_PORT else f"  first   export HEADGATE_CONNECT={connect}\n"

    def _print(self, record: Record, text: str = "", *, fg: str | None = None, bold: bool = False) -> None:
        """The record for programs, the text for people; neither where it is empty."""
        with contextlib.suppress(OSError):
            if record:
                self._output.print_json(record)
            if text:
                self._output.print_text(text, fg=fg, bold=bold)
