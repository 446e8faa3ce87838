"""A log posterior in, draws out: approximations, samplers and what to think of them."""
