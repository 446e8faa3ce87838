"""Questions to a fit: typed functions of the fit and of rows, which estimators have as methods."""
