"""New rows beside a fitted model: what changed, how good its answers are, and why it gives them."""
