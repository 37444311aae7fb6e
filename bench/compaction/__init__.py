"""`./task bench compaction`: compaction by itself, beside Hudi on Spark, and under a cluster's ingest."""
