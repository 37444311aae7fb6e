"""The user that coordinators are for Redis."""

import hashlib
from typing import Final

USER: Final = "headgate"
_COMMANDS: Final = "+get +set +mget +del +scan +watch +unwatch +multi +exec +discard +time +ping +select"
"""What coordinators send, and all that the user may: no CONFIG, DEBUG, MODULE, SAVE, REPLICAOF or EVAL."""


def coordinators_user(password: str) -> str:
    """Returns the line that makes the user, for Redis's settings and its ACL file."""
    return f"user {USER} on #{password_digest(password)} ~{USER}:* {_COMMANDS}"


def password_digest(password: str) -> str:
    """Returns the password as such a line has it."""
    return hashlib.sha256(password.encode()).hexdigest()
