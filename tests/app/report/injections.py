"""Fifty texts that would be something else than text, were one slot of the page not escaped."""

from __future__ import annotations

from typing import Final

HOST: Final = "attacker.invalid"
"""Where a page that was broken into would ask; the domain can never exist."""

PAYLOADS: Final = (
    # Elements.
    "<script>console.log('got in')</script>",
    f"<script src=//{HOST}/a.js></script>",
    "</script><script>console.log('got in')</script>",
    f"<img src=http://{HOST}/a.png>",
    '<img src=x onerror="console.log(1)">',
    "<svg onload=console.log(1)>",
    "<svg/onload=console.log(1)//",
    f"<iframe src=http://{HOST}></iframe>",
    '<iframe srcdoc="<script>parent.console.log(1)</script>">',
    f"<object data=http://{HOST}/a></object>",
    f"<embed src=http://{HOST}/a>",
    f"<link rel=stylesheet href=http://{HOST}/a.css>",
    f"<style>@import 'http://{HOST}/a.css';</style>",
    "<style>*{display:none}</style>",
    f"<meta http-equiv=refresh content='0;url=http://{HOST}'>",
    f"<base href=http://{HOST}/>",
    f"<form action=http://{HOST}><input name=a></form>",
    "<body onload=console.log(1)>",
    "<details open ontoggle=console.log(1)>",
    "<video><source onerror=console.log(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=console.log(1)>",
    "<xmp>",
    "<plaintext>",
    "<!--",
    "<![CDATA[",
    "]]>",
    "<?xml version='1.0'?>",
    # Out of where it stands.
    '"><b>got out</b>',
    "'><b>got out</b>",
    '" onmouseover="console.log(1)',
    "' onfocus='console.log(1)' autofocus='",
    "` onload=`console.log(1)",
    "</title></head><body><b>got out</b>",
    "</style><b>got out</b>",
    "]]></svg><b>got out</b>",
    "</text></svg><img src=x onerror=console.log(1)>",
    "</textarea></td></tr></table><b>got out</b>",
    "-->--!><b>got out</b>",
    # Written otherwise.
    "&lt;b&gt;escaped once&lt;/b&gt;",
    "&#60;b&#62;by number&#60;/b&#62;",
    "\uff1cscript\uff1econsole.log(1)\uff1c/script\uff1e",
    "%3Cscript%3Econsole.log(1)%3C/script%3E",
    "\\u003cscript\\u003e",
    "javascript:console.log(1)",
    f"url(http://{HOST}/a.png)",
    f"x;background:url(http://{HOST}/b.png)",
    "data:text/html,<script>console.log(1)</script>",
    # Of templates, terminals and spreadsheets.
    "{{ 7 * 7 }}{% raw %}${7*7}#{7*7}<%= 7*7 %>",
    "\u202egnp.\u2066exe\x1b[2J\x00",
    '=HYPERLINK("http://attacker.invalid","here")',
)
"""Fifty of them, all different."""

SLOTS: Final = ("column", "level", "class", "target", "title", "file name", "cost")
"""Places of a page where a text of the table or of its name may stand; each payload is in all."""
