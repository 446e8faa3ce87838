"""``python -m bayesrbf`` is the command ``bayesrbf``."""

from __future__ import annotations

from bayesrbf.app.commands import main

if __name__ == "__main__":
    main()
