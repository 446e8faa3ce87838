"""The mixture: laws, E-step, EM, posterior, Gibbs, discriminative objectives, missing cells."""
