"""Tables as files: what their cells mean, and what is doubtful."""
