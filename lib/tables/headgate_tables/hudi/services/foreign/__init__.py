"""Tables that another program made or wrote: what it did, whether we can go on, and taking it over."""
