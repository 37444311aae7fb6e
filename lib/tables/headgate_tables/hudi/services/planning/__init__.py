"""Which slices are due, which files a plan pins, and the life of a plan in the commit log."""
