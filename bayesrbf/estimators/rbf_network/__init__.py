"""RBF networks as estimators, of classes and of numbers."""
