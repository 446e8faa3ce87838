"""RBF networks: a classifier and a regressor."""
