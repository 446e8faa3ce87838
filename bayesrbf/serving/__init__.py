"""A model folder as a page to ask and an interface to call."""
