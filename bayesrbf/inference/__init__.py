"""Draws from a log posterior: approximations, samplers and their diagnostics."""
