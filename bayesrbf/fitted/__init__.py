"""Fitted models of every family, as one interface: what stands between an estimator and arrays."""
