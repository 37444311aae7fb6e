"""Which settings hold secrets. As flags they are refused: every user of the machine can read the flags of every process. Pure."""

import re

_WORDS = frozenset({"key", "password", "secret", "token"})
_OTHERS = ("_id", "_file", "_enabled")
"""``access_key_id``, ``federated_token_file`` and ``sse_bucket_key_enabled`` name a key or a token, and are none."""

_IN_ADDRESS = re.compile(r"://[^/\s]*:\S+@|[?&](?:password|sig|x-amz-[a-z-]+)=", re.IGNORECASE)
_PEM = "-----BEGIN"


def is_secret_option(name: str) -> bool:
    """Whether an object store's setting of this name, as obstore knows it, holds a secret."""
    lower = name.strip().lower()
    return not lower.endswith(_OTHERS) and not _WORDS.isdisjoint(lower.split("_"))


def holds_secret(text: str) -> bool:
    """Whether the text is an address with a password or a signature, or the content of a PEM file."""
    return is_pem(text) or _IN_ADDRESS.search(text) is not None


def is_pem(text: str) -> bool:
    """Whether the text is the content of a PEM file, where its path is wanted."""
    return _PEM in text


def is_header(text: str) -> bool:
    """Whether gRPC takes the text as a header's value and servers read it as one word; empty texts count."""
    return text.isascii() and text.isprintable() and " " not in text
