"""What every command answers today, in plain files: two commits are compared by them (CONTRIBUTING.md)."""
