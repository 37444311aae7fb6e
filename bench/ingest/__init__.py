"""`./task bench ingest`: the cluster, from its clients' rows to the table, beside Hudi on Spark and PyPaimon in one run."""
