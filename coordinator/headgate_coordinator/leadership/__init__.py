"""For which tables this coordinator stands and which it owns: leases in Redis, elections, who else is there."""
