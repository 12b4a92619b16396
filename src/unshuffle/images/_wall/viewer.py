"""The page that shows a wall: its script, style and frame, filled with the data."""

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any

from unshuffle._files.folders import FILES

# Of the page, each after those that it uses: browsers load no modules from disk, so that they are
# joined into one script.
MODULES = (
    *("view", "sheets", "items", "marks", "outline", "wall", "source", "panel", "filters"),
    "page",
)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[a-z]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(function|class|const) )", re.MULTILINE)


def _asset(name: str) -> str:
    return (resources.files("unshuffle.images") / "page" / name).read_text("utf-8")


def bundle_script() -> str:
    """The modules of the viewer as one classic script."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _asset(f"{name}.js"))) for name in MODULES]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def style_sheet() -> str:
    """The style of the page."""
    return _asset("wall.css")


def fill_frame(
    title: str, noun: str, meta: dict[str, Any], *, in_file: bool
) -> tuple[bytes, bytes]:
    """The page before and after the elements with all that a single file holds.

    Otherwise its files are in a folder that `replace_folder` names.
    """
    script, style = bundle_script(), style_sheet()
    if in_file:
        sources = f"script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; img-src data:"
        parts = f"<style>{style}</style>", f"<script>{script}</script>"
    else:
        sources = "script-src 'self'; style-src 'self'; img-src 'self'"
        parts = (
            f'<link rel="stylesheet" href="{FILES}/viewer.css">',
            f'<script src="{FILES}/viewer.js"></script>',
        )
    form = "One file" if in_file else "A folder"
    values = {
        "POLICY": f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'",
        # Folder names may hold any bytes; invalid ones must not break the page.
        "TITLE": html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        "NOUN": html.escape(f"{noun}s"),
        "STYLE": parts[0],
        "SCRIPT": parts[1],
        "PROMISE": f"{form}, no network: nothing leaves this machine.",
        "META": escape_json(meta),
    }

    def fill(template: str) -> bytes:
        # Every other piece names a value. Values are not searched for names again.
        pieces = template.split("@")
        text = "".join(values[each] if k % 2 else each for k, each in enumerate(pieces))
        return text.encode("ascii", "xmlcharrefreplace")

    before, after = _asset("wall.html").split("@DATA@\n")
    return fill(before), fill(after)


def data_element(kind: str, name: str, content: str) -> bytes:
    """An element of the page that holds data and is not run."""
    return f'<script type="{kind}" id="{name}">{content}</script>\n'.encode("ascii")


def data_script(name: str, value: Any) -> bytes:
    """A script that hands a part of the data to the viewer."""
    return f"unshuffleData({json.dumps(name)},{escape_json(value)});\n".encode("ascii")


def escape_json(data: Any) -> str:
    """JSON that cannot close the script element around it, whatever it holds."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _csp_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
