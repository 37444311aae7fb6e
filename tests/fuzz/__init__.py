"""`./task fuzz`: does any message, however strange, hurt a process or anybody else's rows? See `--help`."""
