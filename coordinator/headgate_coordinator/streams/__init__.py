"""The streams of writers and compactors, and the events that their messages become."""
