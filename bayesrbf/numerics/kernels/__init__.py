"""Compiled kernels: one file a case, each held equal to its NumPy reference by a test."""
