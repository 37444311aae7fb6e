"""Imports structlog without rich, which it would import where it is installed, for tracebacks that services do not print. It took
a tenth of a service's start. To be imported before structlog.
"""

import sys

if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # what an import takes for "not installed"
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
