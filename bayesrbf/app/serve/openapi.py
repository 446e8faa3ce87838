"""The interface of a model as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bayesrbf.app.serve.questions import QUESTIONS, Question
from bayesrbf.app.serve.served import CSV, JSON, PARQUET, Limits, ServedModel
from bayesrbf.version import __version__


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
            **{
                f"/{name}": {"post": _operation(question, served, limits)}
                for name, question in QUESTIONS.items()
            },
            "/model": {
                "get": {
                    "summary": "The model: columns, classes, held-out scores, version, digest.",
                    "responses": {"200": {"description": "The model.", "content": {JSON: {}}}},
                }
            },
        },
        "components": {"schemas": {"Row": row, "Problems": _PROBLEMS}},
    }


_PROBLEMS: Final = {
    "type": "object",
    "required": ["problems"],
    "properties": {"problems": {"type": "array", "items": {"type": "string"}}},
}


def _answers(question: Question, served: ServedModel) -> dict[str, Any]:
    """The answers to a question as a schema."""
    columns = {name: {"type": types} for name, types in question.columns(served).items()}
    line = {"type": "object", "properties": columns}
    return {
        "type": "object",
        "required": ["model", "digest", "answers", "warnings"],
        "properties": {
            "model": {"type": "string"},
            "digest": {"type": "string"},
            "answers": {"type": "array", "items": line},
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
    }


def _row(served: ServedModel, example: Mapping[str, object]) -> dict[str, Any]:
    """A row as a schema."""
    columns: dict[str, Any] = {}
    levels = served.estimator.columns_.levels_of
    for shown in served.fields:
        numbers = [] if shown.kind.of_texts else ["number"]
        schema: dict[str, Any] = {
            "type": [*numbers, "string", "null"],
            "description": shown.extent,
        }
        if shown.name in levels:
            names = [name for name, _ in shown.levels]
            schema = {"enum": [*dict.fromkeys([*levels[shown.name], *names]), None]}
        columns[shown.name] = schema
    return {"type": "object", "properties": columns, "example": dict(example)}


def _operation(question: Question, served: ServedModel, limits: Limits) -> dict[str, Any]:
    """One question as an operation."""
    row, problem = {"$ref": "#/components/schemas/Row"}, {"$ref": "#/components/schemas/Problems"}
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}
    wrapped = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
    table = {"schema": {"type": "string", "format": "binary"}}
    refused = {"content": {JSON: {"schema": problem}}}
    return {
        "operationId": question.name,
        "summary": question.description,
        "parameters": [
            {
                "name": option.name,
                "in": "query",
                "description": option.description,
                "schema": {"type": option.type},
            }
            for option in question.options
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
                    JSON: {"schema": _answers(question, served)},
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
