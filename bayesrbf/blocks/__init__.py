"""The one seam between rows and whoever runs over them: blocks that are mapped and reduced.

All that a fit asks of rows are sums. :class:`Blocks` says so in three verbs: ``map`` a function
over blocks of rows, have them ``kept`` where they lie, ``reduce`` what came of them. Who runs the
map is the block's business: this process, over blocks on disk (:class:`LocalBlocks`), or a Dask
cluster (:class:`DaskBlocks`). :func:`as_collection` cuts what a user hands over into such blocks.
"""

from __future__ import annotations

from bayesrbf.blocks.collection import BLOCK_ROWS, Collection, as_collection, is_collection, no_rows
from bayesrbf.blocks.dask_blocks import ClusterError, DaskBlocks, dask_parts
from bayesrbf.blocks.local_blocks import Blocks, LocalBlocks

__all__ = [
    "BLOCK_ROWS",
    "Blocks",
    "ClusterError",
    "Collection",
    "DaskBlocks",
    "LocalBlocks",
    "as_collection",
    "dask_parts",
    "is_collection",
    "no_rows",
]
