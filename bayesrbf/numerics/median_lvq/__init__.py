"""Exemplars on dissimilarities: likelihood, search and sampling, on arrays."""
