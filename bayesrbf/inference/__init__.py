"""A log posterior in, draws out: approximations, samplers, and how far to trust them."""
