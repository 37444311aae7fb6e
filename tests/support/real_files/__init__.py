"""Files as people have them, with the options of `headgate load` and what comes of it."""
