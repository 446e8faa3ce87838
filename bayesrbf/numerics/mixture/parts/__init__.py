"""The laws of columns given the component, one class each."""
