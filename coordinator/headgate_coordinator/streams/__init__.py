"""The streams of writers and compactors, and what their messages mean to the core."""
