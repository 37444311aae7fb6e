"""Tables that another program made or wrote to: what it did, whether this library can continue, and taking them over."""
