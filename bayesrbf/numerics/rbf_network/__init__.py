"""RBF networks whose hidden layer is a mixture, on arrays."""
