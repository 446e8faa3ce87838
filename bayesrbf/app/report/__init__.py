"""The report of a table: its job, its sections, its page."""
