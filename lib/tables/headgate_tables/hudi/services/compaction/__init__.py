"""One operation of a compaction plan: base file and logs of a slice become a new base file."""
