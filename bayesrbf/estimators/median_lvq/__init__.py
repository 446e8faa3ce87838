"""Exemplar classifiers as an estimator."""
