"""Frozen records that every room knows: names, structure, parameters, priors, results."""
