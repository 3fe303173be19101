"""The page verify.html: one file, with all modules that it needs, to be opened from a disk.

    python client/web/tools/verify_page.py dist/verify.html

Every module becomes a function of its own, called once, after those that it imports. Its policy names the
script's hash and allows no connection.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
IMPORT = re.compile(r"^import \{([^}]*)\} from '([^']+)';\n", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def page(source: Path = SOURCE) -> str:
    """Return the page's text.

    Raises:
        ValueError: If a module imports or exports in a way that is not known here.
    """
    modules: dict[Path, str] = {}
    _add(modules, source / "verify" / "page.js")
    script = (
        f"\nconst modules = {{}};\n{''.join(modules.values())}modules['verify/page.js'].start(document);\n"
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = (source / "verify" / "page.html").read_text(encoding="utf-8")
    return template.replace("{hash}", f"sha256-{digest}").replace("{script}", script)


def _add(modules: dict[Path, str], path: Path) -> None:
    if path in modules:
        return
    text = path.read_text(encoding="utf-8")
    for _, other in IMPORT.findall(text):
        _add(modules, (path.parent / other).resolve())

    def bound(found: re.Match[str]) -> str:
        name = (path.parent / found[2]).resolve().relative_to(SOURCE.resolve()).as_posix()
        return f"const {{{found[1]}}} = modules['{name}'];\n"

    names = [name for _, name in EXPORT.findall(text)]
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(bound, text))
    if left := re.search(r"^(import|export)\b.*|</script", body, re.MULTILINE):
        raise ValueError(f"{path.name} must import and export by name, got {left[0]!r}")
    name = path.resolve().relative_to(SOURCE.resolve()).as_posix()
    modules[path] = f"modules['{name}'] = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


if __name__ == "__main__":
    (out := Path(sys.argv[1])).parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(), encoding="utf-8")
