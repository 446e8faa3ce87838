"""A sparse mixture as the last layer of a PyTorch network; needs PyTorch."""

from __future__ import annotations

try:
    import torch  # noqa: F401  said here once, for all modules of the package
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "bayesrbf.torch needs PyTorch, which is not installed: "
        "run  pip install torch  and import it again.",
        name="torch",
    ) from error

from bayesrbf.torch.sdgm_head import SDGMHead

__all__ = ["SDGMHead"]
