"""The tables for which this coordinator stands, and those that it owns: leases in Redis, elections, the other coordinators."""
