"""Gibbs sweeps of a mixture: augmentation, conjugate blocks, jumps between modes."""
