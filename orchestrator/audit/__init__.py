"""What an evaluation may not do, tested by intervention on trained models."""
