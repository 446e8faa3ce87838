"""What every other part stands on: rows, priors, files, blocks, log posteriors, kernels."""
