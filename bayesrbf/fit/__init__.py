"""From a user's table to a fit: reading, held-out rows, calibration, probabilities, draws."""
