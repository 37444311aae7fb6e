"""What operators are told of a file slice that cannot be compacted. Pure."""

from headgate_tables.commitlog.times import format_time
from headgate_tables.hudi.services.stuck import StuckSlice


def alarm(stuck: StuckSlice) -> str:
    """Which slice, which file and byte, what is done."""
    again = f"after {format_time(stuck.again)}" if stuck.again else "next"
    why = stuck.why.rstrip().removesuffix(".")
    text = f"file slice {stuck.name} cannot be compacted: {why}. {stuck.tries} plans went on without it"
    return f"{text}, and it is tried again {again}; other slices go on"
