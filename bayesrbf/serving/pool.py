"""Processes that answer requests: how many may wait, how long one may take, what if one dies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, Final

from loky.process_executor import ProcessPoolExecutor

from bayesrbf.serving.settings import Asked, Limits, ModelFolder, Reply, RequestError
from bayesrbf.serving.tasks import begin, perform

THREADS: Final = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
# Arrays over draws come and go; a process that grew by 300 MB would else be started again.
ENVIRONMENT: Final = dict.fromkeys(THREADS, "1") | {"LOKY_MAX_MEMORY_LEAK_SIZE": "2e9"}
LATE: Final = 5.0
"""Seconds beyond its time after which an answer is not waited for: blocks of rows end by then."""


class Pool:
    """Processes with the models; requests are answered in the order in which they come."""

    def __init__(self, folders: Sequence[ModelFolder], workers: int, limits: Limits) -> None:
        self.limits = limits
        self._folders = tuple(folders)
        self._workers = workers
        self._under_way = 0
        self._executor = self._started()

    def _started(self) -> Any:
        return ProcessPoolExecutor(
            self._workers,
            initializer=begin,
            initargs=(self._folders, os.getpid()),
            env=ENVIRONMENT,
        )

    async def ready(self) -> None:
        """Wait until a process has the models and has answered once, however long that takes."""
        for folder in self._folders:
            asked = Asked(folder.name, "page", query={"row": "1"})
            await asyncio.wrap_future(self._executor.submit(perform, asked, self.limits))

    async def ask(self, asked: Asked) -> Reply:
        """The answer; RequestError with 503 where too many wait, or it takes too long."""
        if self._under_way >= self._workers + self.limits.waiting:
            raise RequestError(503, "Too many requests are waiting; ask again later.")
        executor = self._executor
        self._under_way += 1
        try:
            future = executor.submit(perform, asked, self.limits)
            # Time in the queue counts, too: who asked has waited that long.
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds + LATE)
        except TimeoutError:
            raise RequestError(
                503, f"There was no answer within {self.limits.seconds:g} s; ask again later."
            ) from None
        except BrokenExecutor:
            if executor is self._executor:  # the first to notice starts new processes
                self._executor = self._started()
            raise RequestError(503, "The process that answered ended; ask again.") from None
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(wait=True, kill_workers=True)
