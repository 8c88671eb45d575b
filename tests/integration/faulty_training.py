"""The faulty trainable without an evaluation: what training reports is the result."""

from tests.integration.faulty import FaultyConfig, train

__all__ = ["FaultyConfig", "train"]
