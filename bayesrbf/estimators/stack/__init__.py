"""The calibrated default: members, pool and their posterior."""
