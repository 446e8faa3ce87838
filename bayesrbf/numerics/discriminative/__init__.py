"""Mixtures fitted for discrimination: objectives, slopes and their search."""
