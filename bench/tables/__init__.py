"""`./task bench tables`: the tables library against its peers, in one run on one machine."""
