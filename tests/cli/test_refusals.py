"""What commands refuse before anything is done, and what they advise then."""

from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode


@pytest.mark.parametrize("store", ["ftp://x", "s3://"])
def test_a_cluster_of_a_store_that_cannot_be_is_refused_before_any_process_starts(
    store: str, headgate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, events, error = headgate("dev", "--store", store)
    assert (code, events, error["kind"]) == (ExitCode.FIX_CALL, [], "OptionError")
    assert store in error["message"]
    assert not any(tmp_path.iterdir())
