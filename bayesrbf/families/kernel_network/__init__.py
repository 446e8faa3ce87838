"""Kernel networks."""
