"""Blocks of conditional computation for any model: one file a block, of functions and small modules."""
