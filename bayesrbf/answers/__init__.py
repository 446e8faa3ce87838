"""Questions that several estimators answer about rows."""
