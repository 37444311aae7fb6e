"""Whether a table stays healthy over thousands of commits with nobody looking after it."""
