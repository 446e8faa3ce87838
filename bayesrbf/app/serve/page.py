"""Pages and parts of pages, as a process of the pool makes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import jinja2

from bayesrbf.app import words
from bayesrbf.app.explain import of_novelty
from bayesrbf.app.report.options import VALIDATION
from bayesrbf.app.report.render import environment
from bayesrbf.app.serve import case, pictures
from bayesrbf.app.serve.interface import records_of
from bayesrbf.app.serve.openapi import description
from bayesrbf.app.serve.questions import QUESTIONS
from bayesrbf.app.serve.served import (
    HTML,
    JSON,
    NOTHING,
    Limits,
    ModelRequest,
    Reply,
    RequestError,
    Tally,
)
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.app.serve.served import ServedModel


NO_PANELS: Final[Mapping[str, Any]] = MappingProxyType({})
AS_FILE: Final = {"Content-Disposition": 'attachment; filename="case.json"'}
MAX_FORM_BYTES: Final = 1_000_000


@cache
def _templates() -> jinja2.Environment:
    """The templates of the desk."""
    templates = environment("bayesrbf.app.serve")
    templates.filters |= {"signed": words.signed, "cell": words.cell_text, "points": _points}
    templates.filters["novelty"] = of_novelty
    templates.globals |= {"isnan": math.isnan, "picture": pictures, "version": __version__}
    templates.globals["panel_names"] = [panel.name for panel in case.PANELS]
    return templates


def _points(change: float) -> str:
    """A change of a probability in points of a hundred.

    >>> _points(1.44), _points(-12.0)
    ('+1.4 points', '−12.0 points')
    """
    return f"{'+' if change > 0 else words.MINUS}{abs(change):.1f} points"


def _html(template: str, status: int = 200, tally: Tally = NOTHING, **slots: Any) -> Reply:
    """A page, or a part of one."""
    text = words.harmless(_templates().get_template(template).render(**slots))
    return Reply(text.encode(), HTML, status, tally=tally)


def problems(status: int, sentences: Iterable[str]) -> Reply:
    """Problems of a request as JSON, for the interface."""
    content = json.dumps({"problems": list(sentences)}, ensure_ascii=False)
    return Reply(content.encode("utf-8", "replace"), JSON, status)


def refusal(status: int, sentences: Iterable[str]) -> Reply:
    """Problems of a case, in place of its answer."""
    return _html("problems.html", status, sentences=list(sentences))


def _json(record: object) -> Reply:
    """A record as JSON."""
    return Reply(json.dumps(words.plain(record), ensure_ascii=False, indent=1).encode())


def _api(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    text = json.dumps(_example(served), ensure_ascii=False)
    address = request.address.rstrip("/")
    options = {option.name: option for kind in QUESTIONS.values() for option in kind.options}
    slots: dict[str, Any] = {"questions": QUESTIONS, "options": options, "address": address}
    return _html("api.html", served=served, example=text, **slots)


def _example(served: ServedModel) -> dict[str, object]:
    """A row of usual cells as a row of JSON, in which dates and the like are texts."""
    row = records_of(served.usual)[0]
    texts = (f for f in served.fields if f.kind.of_texts and row[f.name] is not None)
    return row | {f.name: f.kind.typed(float(str(row[f.name]))) for f in texts}


def _page(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """The page, empty or filled with a training row."""
    number = request.query.get("row", "")
    if not number:
        return _case(served, {})
    if not served.shows_rows:
        message = "This server does not show training rows; type what is known of a case."
        return _case(served, {}, sentences=[message], status=422)
    n_rows = len(served.cells)
    if not (case.is_short(number) and 1 <= int(number) <= n_rows):
        message = f"A row is a number from 1 to {n_rows}; received {number[:20]!r}."
        return _case(served, {}, sentences=[message], status=422)
    index = int(number) - 1
    form = case.form_of(served, index)
    return _filled(served, form, _training_row(served, index))


def _training_row(served: ServedModel, index: int) -> dict[str, object]:
    """Label and held-out probabilities of a training row."""
    row: dict[str, object] = {"number": index + 1, "name": None, "label": None, "held_out": None}
    frame = served.predictions
    if len(frame) != len(served.cells):
        return row
    line = frame.iloc[index]
    label = line.get("label")
    if served.options.table.id is not None and frame.columns[1] not in ("label", "predicted"):
        row["name"] = str(line.iloc[1])
    if isinstance(label, str):
        row |= {"label": label, "held_out": line.get(f"held_out_{label}")}
    return row


def _answered(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """The page with all its answers, for browsers without JavaScript."""
    return _filled(served, _form(request), None)


def _filled(served: ServedModel, form: Mapping[str, str], training_row: object) -> Reply:
    """The page with all answers about the fields of a form, or with their problems."""
    try:
        row = case.row_of(served, form)
    except RequestError as error:
        return _case(served, form, sentences=error.problems, status=error.status)
    panels = {panel.name: panel.of(served, row, form) for panel in case.PANELS}
    tally = _tally(panels["answer"])
    return _case(served, form, panels=panels, training_row=training_row, tally=tally)


def _case(
    served: ServedModel,
    form: Mapping[str, str],
    panels: Mapping[str, Any] = NO_PANELS,
    sentences: Sequence[str] = (),
    training_row: object = None,
    status: int = 200,
    tally: Tally = NOTHING,
) -> Reply:
    """The page of a case."""
    slots = {"form": form, "sentences": sentences, "filled": training_row, "is_asked": bool(panels)}
    label = case.label_of(served, form)
    return _html("case.html", status, tally, served=served, label=label, **slots, **panels)


def _panel(panel: case.Panel) -> Page:
    """One part of the page."""

    def page(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
        form = _form(request)
        answer = panel.of(served, case.row_of(served, form), form)
        tally = _tally(answer) if isinstance(answer, case.CaseAnswer) else NOTHING
        slots = {"label": case.label_of(served, form), panel.name: answer}
        return _html(f"part_{panel.name}.html", 200, tally, served=served, **slots)

    return page


def _tally(answer: case.CaseAnswer) -> Tally:
    """Counts of one answered case, for the metrics."""
    judged = not math.isnan(answer.novelty)
    sums = {of_class.answer.label: of_class.answer.probability for of_class in answer.classes}
    return Tally(1, int(answer.is_novel), int(judged), sums)


def _form(request: ModelRequest) -> dict[str, str]:
    """The fields of a form."""
    if len(request.body) > MAX_FORM_BYTES:
        raise RequestError(413, f"A form may have at most {MAX_FORM_BYTES} bytes.")
    try:
        text = request.body.decode()
        return dict(parse_qsl(text, max_num_fields=20_000, errors="strict"))
    except ValueError:
        raise RequestError(422, "The body is no form in UTF-8.") from None


def _export(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """The case as JSON: cells and answers of the model."""
    form = _form(request)
    row = case.row_of(served, form)
    answer = case.answer_of(served, row, {})
    record = {
        "model": served.title,
        "digest": served.digest,
        "cells": records_of(row)[0],
        "classes": [of_class.answer for of_class in answer.classes],
        "prob": served.focus.level,
        "novelty": answer.novelty,
        **{panel.saved: panel.of(served, row, form) for panel in case.PANELS if panel.saved},
    }
    return replace(_json(record), headers=AS_FILE, tally=_tally(answer))


def _card(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """The model card, with the figures of a validation where one of the model is in its folder."""
    return _html("card.html", served=served, validation=served.figures(VALIDATION), page=VALIDATION)


def _model(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """The model card as JSON."""
    purpose = asdict(served.focus.purpose)
    return _json(served.card | purpose | {"validation": served.figures(VALIDATION)})


Page = Callable[["ServedModel", ModelRequest, Limits], Reply]

PAGES: Final[dict[str, Page]] = {
    "page": _page,
    "answered": _answered,
    "export": _export,
    "card": _card,
    "api": _api,
    "openapi": lambda served, request, limits: _json(description(served, limits, _example(served))),
    "model": _model,
    **{f"part-{panel.name}": _panel(panel) for panel in case.PANELS},
}
"""Pages by the names of their tasks."""
