"""How much memory another process has used at most (Linux)."""

from pathlib import Path


def peak_memory(pid: int) -> int:
    """Resident bytes, the most since the process began or ``reset_peak_memory``."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def reset_peak_memory(pid: int) -> int:
    """What it uses now, from which on the peak counts."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return peak_memory(pid)
