"""Where the CPU of a row goes, stage by stage, from a client's batch to a durable file."""
