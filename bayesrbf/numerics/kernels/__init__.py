"""Compiled kernels: one file a case, each held equal to its NumPy reference by a test.

Arrays are NumPy's without shapes in their types, because what Numba compiles is not checked. In all
files a tile has cells and deviations (feature, place), log joints and responsibilities (component,
place), and moments (component, feature) and (component, feature, feature). Missing cells are NaN.
``components`` are a tile's first component and the one after its last; k is a component, g a
covariance group. Results are added in place.
"""
