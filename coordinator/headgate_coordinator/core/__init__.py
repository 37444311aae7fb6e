"""What one table's owner decides: events in, instructions out. Pure: no clock, no I/O, no gRPC."""
