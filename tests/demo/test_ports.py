"""Ports for servers that are about to be started: no two servers of a run get the same one."""

import subprocess
import sys

from demo.ports import free_port

_MANY = 300


def test_no_port_is_given_twice_in_a_process() -> None:
    assert len({free_port() for _ in range(_MANY)}) == _MANY


def test_no_port_is_given_to_two_processes() -> None:
    code = f"from demo.ports import free_port; print(*(free_port() for _ in range({_MANY})), flush=True); input()"
    others = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    try:
        given = [port for other in others if other.stdout for port in other.stdout.readline().split()]
    finally:
        for other in others:
            _ = other.communicate("\n")
    assert len(set(given)) == len(given) == 8 * _MANY
