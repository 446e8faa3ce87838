"""Work of equal parts, which processes may share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.inference.progress import progress

Heard = tuple[Warning | str, str, int]
"""A warning, and the file and the line that it is about."""


def run_tasks[T, A](
    function: Callable[[T], A],
    tasks: Sequence[T],
    description: str,
    n_jobs: int | None = None,
    progress_bar: bool = False,
) -> list[A]:
    """Answers to all tasks in their order; ``n_jobs`` processes share them.

    Progress is that of the answers. Warnings are given here, each once, from whatever process.
    """
    answers: list[A] = []
    given: set[tuple[str, str, int]] = set()
    with progress(progress_bar) as track:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        results = parallel(delayed(_listened)(function, task) for task in tasks)
        for _ in track(tasks, description):
            answer, heard = next(results)
            answers.append(answer)
            for message, file, line in heard:
                if (about := (str(message), file, line)) not in given:
                    given.add(about)
                    warnings.warn_explicit(message, None, file, line)
    return answers


def _listened[T, A](function: Callable[[T], A], task: T) -> tuple[A, list[Heard]]:
    """An answer, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        answer = function(task)
    return answer, [(one.message, one.filename, one.lineno) for one in caught]
