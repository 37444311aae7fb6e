"""`./task mutants`: does a test fail when a line that it guards is wrong? See `--help`."""
