"""Networks whose hidden layer is the training rows, on arrays."""
