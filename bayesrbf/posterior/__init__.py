"""What posterior draws say about rows: predictions, uncertainty, calibration."""
