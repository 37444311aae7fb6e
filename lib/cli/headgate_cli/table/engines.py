"""`headgate table describe TABLE --for ENGINE`: what another engine runs and sets to use a table, as a script."""

from headgate_cli.output import Output
from headgate_tables.face.engines import EngineSetup


def show_setup(output: Output, setup: EngineSetup) -> None:
    """Prints a script: notes and options are its comments. With --json: one object."""
    output.print_json(
        {
            "engine": setup.engine,
            "statements": list(setup.statements),
            "settings": dict(setup.settings),
            "options": dict(setup.options),
            "notes": list(setup.notes),
        }
    )
    for note in setup.notes:
        output.print_text(f"-- {note}")
    for statement in (*setup.statements, *(f"SET {key}={value}" for key, value in setup.settings.items())):
        output.print_text(f"{statement};")
    if setup.engine == "flink":
        return  # its statement has them
    output.print_text("-- Catalog file:" if setup.engine == "trino" else "-- Without SQL, as options of a DataFrame:")
    for key, value in setup.options.items():
        output.print_text(f"--   {key}={value}")
