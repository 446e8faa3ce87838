"""Requests that are wrong in some way, made from what the server says of itself."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, quote_plus

import pandas as pd

from bayesrbf.app.serve.case import PANELS
from bayesrbf.app.serve.questions import QUESTIONS
from bayesrbf.app.serve.served import CSV, JSON, PARQUET
from tests.app.report.injections import PAYLOADS
from tests.app.serve.server import Server

FORM: Final = "application/x-www-form-urlencoded"
SECRET: Final = "Zebedee"
"""A cell that no log may have."""
CELLS: Final[tuple[Any, ...]] = (
    *(SECRET, f"{SECRET}\n", f"1{SECRET}"),
    *(None, True, -1, 0, 0.5, 1e308, -1e-320, 2**63, 10**300, 10**400, -0.0, "", " ", "0", "1,5"),
    *("1.234,5", "1e999", "nan", "inf", "-Infinity", "0x10", "1_0", "٣", "NA", "x" * 3000, "\x00"),
    *("\ud800", "\r\n", "2022-02-30", "9999-12-31", "0001-01-01", [], {}, [[]], {"a": {}}, "≥5"),
    *PAYLOADS,
)
"""Cells that are wrong, odd or hostile."""
TOKENS: Final = (
    *("{}", "[", "]", "{", "}", ",", ":", '"', "\\", "null", "true", "NaN", "-Infinity", "1e999"),
    *(
        "9" * 400,
        "9" * 5000,
        '"\\u0000"',
        '"\\ud800"',
        '"rows":',
        ";",
        "\n",
        '"a\nb"',
        "&",
        "=",
        "%",
    ),
    *(
        "[" * 50,
        '{"a":' * 50,
        "[" * 50_000,
        "%00",
        "%ff",
        "%C0%AF",
        "\x00",
        "\ufeff",
        "é",
        "\u2028",
    ),
)
"""What is put where it does not belong."""
BYTES: Final = (
    b"\xff",
    b"\xfe\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\x00",
    b"PAR1",
    b"\x1f\x8b\x08",
)
METHODS: Final = (
    *("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND"),
    *("get", "X" * 2000),
)
ADDRESSES: Final = (
    *(
        "//",
        "/%00",
        "/..%2f..%2fetc%2fpasswd",
        "/../../etc/passwd",
        "/static/../desk.css",
        "/api//",
    ),
    *("/static/%2e%2e/%2e%2e/pyproject.toml", "/static/desk.css%00.html", "/" + "a" * 9000, "/*"),
    *("/" * 500, "/api/predict/", "/api/%70redict", "/parts/nothing", "/api/model/../predict", "*"),
    *(
        "http://attacker.invalid/",
        "http://127.0.0.1/healthz",
        "/%ff%fe",
        "/é".encode().decode("latin-1"),
    ),
    *("/api/predict;x=1", "/healthz?x#y", "/favicon.ico", "/metrics", "/card/", "/\\..\\windows"),
)
QUERIES: Final = (
    *("prob=nan", "prob=1e999", "prob=-1", "prob=0.5&prob=2", "prob=", "prob=%00", "prob=1_0"),
    *("refer=inf", "refer=-3", "refer=1e-320", "row=0", "row=99999999999999999999", "row=%D9%A3"),
    *("row=1", "row=-1", "row=1.5", "row=%3Cscript%3E", "a" * 9000, "a" * 20_000, "&" * 5000),
    *(
        "=".join("ab" * 300),
        "%zz",
        "%ff=%fe",
        "x[]=1",
        "prob=0.99999999999999999999",
        "prob=1e-300",
    ),
    *(
        "costs=" + quote_plus(text)
        for text in (
            *("", "{}", "[]", "1", "null", '{"a": 1}', '{"well": 1e999}', '{"well": NaN}'),
            *('{"well": -1}', '{"well": 0}', '{"well": "2"}', '{"well": [1]}', '{"well": 1e300}'),
            *(
                f'{{"well": {"9" * 400}}}',
                "[" * 3000,
                '{"a":' * 900,
                '{"well": 1, "ill <b>": 1e-300}',
            ),
        )
    ),
)
HEADERS: Final = (
    *((b"Host", name) for name in (b"evil.example", b"", b"127.0.0.1.evil", b"[::1", b"a" * 3000)),
    *((b"Host", name) for name in (b"\xff\xfe", b"127.0.0.1:x", b"localhost@evil", b"0x7f.1")),
    *((b"Accept", b"application/xml"), (b"Accept-Encoding", b"gzip"), (b"Range", b"bytes=0-1")),
    *(
        (b"Authorization", b"Basic \xff"),
        (b"Origin", b"http://evil.example"),
        (b"Cookie", b"=" * 99),
    ),
    *((b"Expect", b"100-continue"), (b"Expect", b"200-never"), (b"Upgrade", b"websocket")),
    *((b"Connection", b"Upgrade"), (b"Connection", b"keep-alive, close"), (b"X", b"y" * 60_000)),
    *((b"X", b"y" * 90_000), (b"X-Forwarded-Host", b"evil"), (b"X-HTTP-Method-Override", b"PUT")),
    *((b"Content-Encoding", b"gzip"), (b"Content-Length", b"0"), (b"Content-Length", b"-1")),
    *(
        (b"Content-Length", b"1, 1"),
        (b"Content-Length", b"9" * 30),
        (b"Transfer-Encoding", b"gzip"),
    ),
    *((b"Bad Name", b"x"), (b"X", b"\x00"), (b"", b"x")),
    (b"If-Modified-Since", b"Thu, 01 Jan 1970 00:00:00 GMT"),
)
TYPES: Final = (
    *(
        JSON,
        CSV,
        PARQUET,
        FORM,
        "",
        "text/html",
        "multipart/form-data; boundary=x",
        "application/xml",
    ),
    *(
        "application/json; charset=utf-16",
        "APPLICATION/JSON",
        "json",
        "x" * 3000,
        "text/csv;",
        "\xff",
    ),
    *("application/json, text/csv", "*/*", "application/vnd.apache.parquet;x"),
)
CHUNKS: Final = (
    b"0\r\n\r\n",
    b"zz\r\n",
    b"3\r\n[{}\r\n0\r\n\r\n",
    b"F" * 30 + b"\r\nx",
    b"-1\r\n",
    b"\r\n\r\n",
)
"""Bodies in pieces."""
LARGEST: Final = 200_000
"""Bytes that the server takes."""
GETS: Final = (
    *("/", "/?row=3", "/card", "/api", "/api/model", "/api/openapi.json", "/metrics", "/healthz"),
    *("/static/desk.css", "/static/desk.js", "/favicon.ico"),
)
POSTS: Final = ("/", "/case.json", *(f"/parts/{part.name}" for part in PANELS))
ASKED: Final = tuple(f"/api/{question}" for question in QUESTIONS)


@dataclass(frozen=True)
class Sent:
    """A request as it goes over the wire."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def raw(self) -> bytes:
        """Its bytes; the length of the body is told unless a header says another thing."""
        target = self.path + (f"?{self.query}" if self.query else "")
        given = {name.lower() for name, _ in self.headers}
        headers = list(self.headers)
        if b"host" not in given:
            headers.append((b"Host", b"127.0.0.1"))
        if not given & {b"content-length", b"transfer-encoding"}:
            headers.append((b"Content-Length", str(len(self.body)).encode()))
        first = f"{self.method} {target} HTTP/1.1\r\n".encode("latin-1", "replace")
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        return first + lines + b"\r\n" + self.body

    @property
    def media_type(self) -> str:
        """What it says that its body is."""
        own = [value for name, value in self.headers if name.lower() == b"content-type"]
        return own[-1].decode("latin-1") if own else ""

    def with_body(self, body: bytes) -> Sent:
        """With another body."""
        return replace(self, body=body)

    def named(self, name: bytes, value: bytes) -> Sent:
        """With a header, in place of those of the same name."""
        kept = tuple(one for one in self.headers if one[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))


Row = dict[str, Any]
Columns = dict[str, tuple[Any, ...]]
"""With their levels; none of numbers."""


def columns_of(server: Server) -> Columns:
    """The columns of the model, as the interface describes them."""
    told = json.loads(server.ask("GET", "/api/openapi.json").content)
    assert {path.rpartition("/")[2] for path in told["paths"]} == {*QUESTIONS, "model"}
    cells = told["components"]["schemas"]["Row"]["properties"]
    return {name: tuple(cell.get("enum", ())) for name, cell in cells.items()}


def at_random(rng: random.Random, columns: Columns) -> Sent:
    """A request, with up to three things wrong with it."""
    sent = rng.choice((_question, _question, _question, _form, _page))(rng, columns)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        sent = rng.choice(WRONG)(rng, sent)
    return sent


def _row(rng: random.Random, columns: Columns) -> Row:
    """A row whose cells are as they should be, or not."""
    row: Row = {}
    for name, levels in columns.items():
        if rng.random() < 0.7:
            row[name] = rng.choice(levels or (round(rng.gauss(40, 20), 1), rng.randint(0, 90)))
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        row[rng.choice((*columns, *columns, "", "outcome", *PAYLOADS))] = rng.choice(CELLS)
    return row


def _question(rng: random.Random, columns: Columns) -> Sent:
    """Rows for the interface, in one of its three forms."""
    rows = [_row(rng, columns) for _ in range(rng.choice((1, 1, 1, 2, 5, 60)))]
    media_type = rng.choice((JSON, JSON, JSON, CSV, PARQUET))
    if media_type == JSON:
        content: Any = rng.choice((rows, rows[0], {"rows": rows}))
        body = json.dumps(content).encode()
    else:
        body = _table(rows, media_type)
    query = rng.choice(QUERIES) if rng.random() < 0.2 else ""
    return (
        Sent("POST", rng.choice(ASKED), query)
        .named(b"Content-Type", media_type.encode())
        .with_body(body)
    )


def _table(rows: list[Row], media_type: str) -> bytes:
    """Rows as a file; columns of numbers are numbers in Parquet."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        if not all(type(cell) in (int, float) and abs(cell) < 1e300 for cell in cells):
            cells = [str(cell).encode(errors="replace").decode() for cell in cells]
        columns[name] = pd.Series(cells, dtype=object if isinstance(cells[0], str) else float)
    return file_of(pd.DataFrame(columns), media_type)


def file_of(frame: pd.DataFrame, media_type: str) -> bytes:
    """A frame as CSV or Parquet."""
    if media_type == CSV:
        return frame.to_csv(index=False).encode()
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False)
    return stream.getvalue()


def _form(rng: random.Random, columns: Columns) -> Sent:
    """The fields of a case."""
    cells = list(_row(rng, dict.fromkeys(columns, ())).values())
    fields = {f"cell-{place}": cell for place, cell in enumerate(cells)}
    fields |= {
        "column": rng.choice((0, 1, 3, 99, -1, "x", "9" * 30)),
        "label": rng.choice(PAYLOADS),
    }
    fields["before"] = rng.choice(("", "0.2 0.8", "nan nan", "1e999 0", "x", "0.5 " * 3000))
    text = "&".join(
        f"{name}={quote_plus(str(cell), errors='replace')}" for name, cell in fields.items()
    )
    sent = Sent("POST", rng.choice(POSTS)).named(b"Content-Type", FORM.encode())
    return sent.with_body(text.encode())


def _page(rng: random.Random, columns: Columns) -> Sent:
    """A page."""
    path, _, query = rng.choice(GETS).partition("?")
    return Sent("GET", path, query)


def _texts(rng: random.Random, sent: Sent) -> Sent:
    """Tokens put into the body, pieces of it cut out or repeated."""
    body = sent.body
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(body) + 1)
        end = start + rng.choice((0, 1, 5, 50))
        token = rng.choice(TOKENS).encode(errors="surrogatepass")
        body = body[:start] + rng.choice((token, b"", body[start:end] * 2)) + body[end:]
    return sent.with_body(body)


def _bytes(rng: random.Random, sent: Sent) -> Sent:
    """Bytes put in or changed."""
    body = bytearray(sent.body)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(body) + 1)
        body[start : start + rng.choice((0, 1, 4))] = rng.choice((*BYTES, rng.randbytes(2)))
    return sent.with_body(bytes(body))


def _size(rng: random.Random, sent: Sent) -> Sent:
    """No body, or a long one."""
    long = rng.choice((b" ", b"[", b"&", b"a=b&", sent.body or b"x"))
    times = rng.choice((100, LARGEST + 9)) // len(long)
    return sent.with_body(rng.choice((b"", long * times, sent.body + long * times)))


def _pieces(rng: random.Random, sent: Sent) -> Sent:
    """A body in pieces, without a length."""
    return sent.named(b"Transfer-Encoding", b"chunked").with_body(rng.choice(CHUNKS))


def _address(rng: random.Random, sent: Sent) -> Sent:
    """Another address."""
    start = rng.randrange(len(sent.path) + 1)
    token = quote(rng.choice((*TOKENS[:12], "/", "..", "%2e", ";", "\\")), safe="/%;")
    return replace(
        sent, path=rng.choice((*ADDRESSES, sent.path[:start] + token + sent.path[start:]))
    )


def _method(rng: random.Random, sent: Sent) -> Sent:
    return replace(sent, method=rng.choice(METHODS))


def _query(rng: random.Random, sent: Sent) -> Sent:
    return replace(sent, query=rng.choice(QUERIES))


def _header(rng: random.Random, sent: Sent) -> Sent:
    return sent.named(*rng.choice(HEADERS))


def _type(rng: random.Random, sent: Sent) -> Sent:
    return sent.named(b"Content-Type", rng.choice(TYPES).encode("latin-1"))


WRONG: Final[tuple[Callable[[random.Random, Sent], Sent], ...]] = (
    *(_texts, _bytes, _size, _pieces, _address, _method, _query, _header, _type),
)
"""What may be wrong with a request beside its cells."""
