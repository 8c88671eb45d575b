"""Routed bytes: a byte-level transformer whose feed-forward networks are small or big for each byte."""
