"""Model folders for tests of the server, and questions put to them in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
import pandas as pd

import bayesrbf
from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.judgement import figures
from bayesrbf.app.report.options import (
    FIGURES,
    MODEL,
    OPTIONS,
    PAGE,
    PREDICTIONS,
    Focus,
    ReportOptions,
    options_content,
)
from bayesrbf.app.report.output import figures_content, to_csv
from bayesrbf.app.serve.served import JSON, Limits, ModelFolder, ModelRequest, Reply
from bayesrbf.app.serve.server import load_models, perform
from bayesrbf.base.files import write_whole
from bayesrbf.base.table_options import PLAIN, TableOptions

LIMITS: Final = Limits(rows=50, bytes=100_000, seconds=60.0)
COSTS: Final = {"ill <b>": 5.0}
HOSTILE: Final = "<script>alert(1)</script>"
"""A level."""


def patients(n: int = 80, seed: int = 0) -> pd.DataFrame:
    """Two real columns, one of days, one of hostile levels, and a class that depends on them."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.4
    table = pd.DataFrame(
        {
            "age": np.round(rng.normal(50 + 12 * ill, 8), 1),
            "dose": np.round(rng.gamma(2, 1 + ill), 3),
            "seen": np.round(8000 + 400 * rng.random(n)),
            "ward": np.where(rng.random(n) < 0.3 + 0.4 * ill, HOSTILE, "b & c"),
        }
    )
    table["outcome"] = np.where(ill, "ill <b>", "well")
    return table


def write_desk(
    folder: Path,
    table: pd.DataFrame,
    model: Any = None,
    options: TableOptions = PLAIN,
    refine: Mapping[str, Any] | None = None,
    costs: Mapping[str, float] = COSTS,
) -> Any:
    """Fit a model to a table with an outcome and write its folder; the model."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = table.drop(columns="outcome"), table["outcome"]
    model = HybridMixtureClassifier(random_state=0) if model is None else model
    model.set_params(column_kinds=options.kinds).fit(X, y)
    if refine is not None:
        model.refine(**refine)
    model.save(folder / MODEL)
    write_whole(folder / OPTIONS, options_content(ReportOptions("outcome", Focus(costs), options)))
    p = model.predict_proba(X)
    held_out = {f"held_out_{label}": p[:, c] for c, label in enumerate(model.classes_)}
    ids = {} if options.id is None else {options.id: [f"{place:03d}" for place in range(len(X))]}
    frame = pd.DataFrame({"row": np.arange(1, len(X) + 1), **ids, "label": y, **held_out})
    write_whole(folder / PREDICTIONS, to_csv(frame))
    return model


def write_report(folder: Path, table: pd.DataFrame, model: Any) -> None:
    """Write what a report of held-out rows says beside its page, which is empty."""
    X, y = table.drop(columns="outcome"), table["outcome"]
    judged = bayesrbf.validate(model, X, y, costs=COSTS).judgement
    write_whole(folder / FIGURES[PAGE], figures_content(figures(judged), folder / MODEL))
    (folder / PAGE).touch()


def serve_here(*folders: ModelFolder) -> None:
    """Let this process answer for some folders."""
    load_models(folders)


def ask(
    task: str,
    body: object = b"",
    media_type: str = JSON,
    model: str = "",
    limits: Limits = LIMITS,
    **query: str,
) -> Reply:
    """Put a request to a model of this process; what is no bytes is written as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return perform(ModelRequest(model, task, content, media_type, query), limits)


def answers(reply: Reply) -> list[dict[str, Any]]:
    """The answers in a reply of the interface."""
    assert reply.status == 200, reply.content
    content: list[dict[str, Any]] = json.loads(reply.content)["answers"]
    return content


def problems(reply: Reply, status: int = 422) -> list[str]:
    """The problems of a request that was refused."""
    assert reply.status == status, reply.content
    content: list[str] = json.loads(reply.content)["problems"]
    return content


def page(task: str, form: Mapping[str, str] | None = None, **query: str) -> str:
    """A page, or a part of it, that was answered."""
    reply = ask(task, urlencode(form or {}).encode(), "application/x-www-form-urlencoded", **query)
    assert reply.status == 200, reply.content
    return reply.content.decode()
