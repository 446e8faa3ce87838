"""The interface as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from bayesrbf.serving.answers import OPTIONS
from bayesrbf.serving.settings import CSV, JSON, PARQUET, QUESTIONS, Limits
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.serving.served_model import ServedModel

WHAT: Final = {
    "predict": "Class probabilities of each row, without intervals.",
    "uncertainty": "Class probabilities with intervals, kinds of doubt and novelty.",
    "explain": "What each cell adds to the log odds of each class (Shapley values, nats).",
    "acquire": "What each missing cell is worth, and which one to measure next.",
    "surprise": "How surprising each cell is, given the rest of its row.",
    "decide": "The answer of least expected cost, and whether to refer the row.",
}
"""What each question answers."""


PARAMETERS: Final = {
    "prob": ("Probability inside intervals.", "number"),
    "costs": ('Costs of mistakes: {"sick": 10, "well": 1}.', "string"),
    "refer": ("Cost of referring a row.", "number"),
}


def description(
    served: ServedModel, limits: Limits, example: Mapping[str, object]
) -> dict[str, Any]:
    """The OpenAPI description of the interface of a model."""
    row = _row(served, example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"bayesrbf: {served.title}",
            "version": __version__,
            "description": "One row or many; cells that are left out or null are missing.",
        },
        "servers": [{"url": f"{served.prefix or ''}/api"}],
        "paths": {
            **{f"/{question}": {"post": _question(question, limits)} for question in QUESTIONS},
            "/model": {
                "get": {
                    "summary": "The model: columns, classes, held-out scores, version, digest.",
                    "responses": {"200": {"description": "The model.", "content": {JSON: {}}}},
                }
            },
        },
        "components": {"schemas": {"Row": row, "Problems": _PROBLEMS, "Answers": _ANSWERS}},
    }


_PROBLEMS: Final = {
    "type": "object",
    "required": ["problems"],
    "properties": {"problems": {"type": "array", "items": {"type": "string"}}},
}
_ANSWERS: Final = {
    "type": "object",
    "required": ["model", "digest", "answers", "warnings"],
    "properties": {
        "model": {"type": "string"},
        "digest": {"type": "string"},
        "answers": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
}


def _row(served: ServedModel, example: Mapping[str, object]) -> dict[str, Any]:
    """A row as a schema."""
    columns: dict[str, Any] = {}
    levels = served.estimator.columns_.levels_of
    for shown in served.fields:
        schema: dict[str, Any] = {"type": ["number", "string", "null"], "description": shown.extent}
        if shown.name in levels:
            names = [name for name, _ in shown.levels]
            schema = {"enum": [*dict.fromkeys([*levels[shown.name], *names]), None]}
        columns[shown.name] = schema
    return {"type": "object", "properties": columns, "example": dict(example)}


def _question(question: str, limits: Limits) -> dict[str, Any]:
    """One question as an operation."""
    row, problem = {"$ref": "#/components/schemas/Row"}, {"$ref": "#/components/schemas/Problems"}
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}
    wrapped = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
    table = {"schema": {"type": "string", "format": "binary"}}
    refused = {"content": {JSON: {"schema": problem}}}
    return {
        "operationId": question,
        "summary": WHAT[question],
        "parameters": [
            {"name": name, "in": "query", "description": what, "schema": {"type": kind}}
            for name, (what, kind) in PARAMETERS.items()
            if name in OPTIONS[question]
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"oneOf": [row, rows, wrapped]}},
                CSV: table,
                PARQUET: table,
            },
        },
        "responses": {
            "200": {
                "description": "One answer for each row, in the form of the request.",
                "content": {
                    JSON: {"schema": {"$ref": "#/components/schemas/Answers"}},
                    CSV: table,
                    PARQUET: table,
                },
            },
            "401": {"description": "The token is missing or wrong.", **refused},
            "413": {"description": "Too many rows or bytes.", **refused},
            "415": {"description": "The content type is none of the three.", **refused},
            "421": {"description": "The Host is no name of the server.", **refused},
            "422": {"description": "Every problem of the request.", **refused},
            "503": {"description": "Too many wait, or it takes too long.", **refused},
        },
    }
