"""Mixtures fitted for discrimination: objectives, their gradients and the search for a mode."""
