"""The calibrated stack of several families."""
