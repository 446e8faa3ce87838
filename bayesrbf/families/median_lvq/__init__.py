"""Exemplars: median GLVQ and RSLVQ."""
