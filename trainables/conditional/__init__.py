"""Blocks of conditional computation for any model: one file a block, functions of tensors, no model and no config."""
