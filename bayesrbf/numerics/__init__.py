"""Array mathematics of the families: NumPy, SciPy and Numba only."""
