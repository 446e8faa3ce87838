"""Thin calls of library solvers on arrays."""
