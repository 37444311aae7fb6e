"""The newest results of the benches as one page of the documentation."""
