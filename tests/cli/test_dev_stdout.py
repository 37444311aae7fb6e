"""`headgate dev | tee log`: Ctrl-C ends tee at once, and the cluster has nobody to tell that it stops."""

import signal
import subprocess
import sys
from pathlib import Path

from demo.ports import free_port
from headgate_cli.exits import ExitCode


def test_a_cluster_whose_reader_is_gone_drains_all_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headgate_cli", "dev", "--port", str(free_port()), "--store", str(tmp_path / "store")]
    command += ["--logs", str(tmp_path / "logs"), "--writers", "1", "--compactors", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dev:
        assert dev.stdout is not None
        assert dev.stderr is not None
        assert any(line.startswith(b"Ctrl-C stops the cluster") for line in dev.stdout)
        dev.stdout.close()
        dev.send_signal(signal.SIGINT)
        assert (dev.stderr.read(), dev.wait()) == (b"", ExitCode.OK)
    for name in ("writer-1", "coordinator-1"):
        assert "draining" in (tmp_path / f"logs/{name}.log").read_text()
