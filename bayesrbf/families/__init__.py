"""A folder a family: its estimator, its fitted model, its log posterior."""
