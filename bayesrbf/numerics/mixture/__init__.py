"""The mixture: densities under missing cells, E-step, M-step, prior, log posterior."""
