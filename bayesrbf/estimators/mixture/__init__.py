"""Mixtures as estimators: density, classifier, and what both share."""
