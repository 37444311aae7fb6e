"""`./task bench spark`: what Spark does for Headgate's tables, beside Hudi's own Spark on the same rows."""
