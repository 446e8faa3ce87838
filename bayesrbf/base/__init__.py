"""Foundation of all parts: rows, priors, files, blocks, log posteriors, compilation."""
