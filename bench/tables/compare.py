"""Whether a table holds what it should; in every contender's environment, so pyarrow only."""

import pyarrow as pa


def differences(found: pa.Table, oracle: str, columns: list[str] | None = None) -> str:
    """Compares with the rows of the Arrow file ``oracle``, in any order. "" when every value of every row is equal."""
    wanted = pa.ipc.open_file(pa.memory_map(oracle)).read_all()
    names = columns or wanted.column_names
    if found.num_rows != wanted.num_rows:
        return f"{found.num_rows} rows instead of {wanted.num_rows}"
    ordered = found.select(names).cast(wanted.select(names).schema).sort_by("event_id")
    return ", ".join(f"column {name}" for name in names if ordered[name] != wanted[name])
