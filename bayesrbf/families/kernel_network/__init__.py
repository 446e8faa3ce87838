"""Kernel network classifier."""
