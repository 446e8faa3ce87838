"""The fitted stack: members, the pool of what they say, and draws of both."""
