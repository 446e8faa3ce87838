"""A model as a page and an HTTP interface."""
