"""Where the bytes of deleted rows still are, and until when, given a table's settings."""

from collections.abc import Sequence

from headgate_tables.face.settings import TableSettings


def erasure_notes(table: str, settings: TableSettings, savepoints: Sequence[str], *, in_cluster: bool) -> list[str]:
    """Sentences for people. ``in_cluster``: its owner compacts and cleans by itself."""
    notes = ["Readers do not see them any more. Their bytes stay in files until these are compacted, and the older ones cleaned."]
    if in_cluster:
        notes.append(f"By itself that is {_compaction(settings)}, and {_cleaning(settings)}.")
    else:
        notes.append("Nothing does that by itself here.")
    notes.append(f"Sooner: headgate compact {table}, then headgate clean {table}, which keeps {_kept(settings)}.")
    if savepoints:
        notes.append(f"Savepoints keep them: {', '.join(savepoints)}. Remove one: headgate savepoint {table} --remove INSTANT")
    return notes


def _compaction(settings: TableSettings) -> str:
    commits = f"{settings.compaction_commits:,} commits to a file slice"
    seconds = f"{settings.compaction_seconds:,.0f} s"
    match settings.compaction_trigger:
        case "NUM_COMMITS":
            return f"after {commits}"
        case "TIME_ELAPSED":
            return f"within {seconds}"
        case "NUM_AND_TIME":
            return f"after {commits} and {seconds}"
        case _:
            return f"within {seconds}, or after {commits}"


def _cleaning(settings: TableSettings) -> str:
    if not settings.clean_automatic:
        return "never cleaned (hoodie.clean.automatic=false)"
    return f"at the earliest {settings.clean_min_age:,.0f} s later; {_kept(settings)} are kept"


def _kept(settings: TableSettings) -> str:
    match settings.clean_policy:
        case "KEEP_LATEST_BY_HOURS":
            return f"the files of the last {settings.clean_hours:,} hours"
        case "KEEP_LATEST_FILE_VERSIONS":
            return f"{settings.clean_versions:,} file slices of each file group"
        case _:
            return f"what the last {settings.clean_commits:,} commits need"
