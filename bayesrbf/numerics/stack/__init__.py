"""A stack of classifiers: its weights and temperatures."""
