"""Published experiments as tables whose cells are computed once: ``bayesrbf reproduce``."""
