"""The scikit-learn contract around the families; no mathematics in here."""
