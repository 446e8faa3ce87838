"""Sparse discriminative mixtures."""
