"""What slots of table services decide, and how the log's facts change by it; see ``commitlog.bodies``."""
