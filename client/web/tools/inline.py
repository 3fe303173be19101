"""A page of one file, with all modules that it needs, to be opened from a disk.

    python client/web/tools/inline.py demo docs/demo.html

Every module of src becomes a function of its own, called once, after those that it imports; src/NAME/page.js
has `start`. The page's policy names the script's hash and allows no connection. A survey.toml beside the page
is compiled into it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
IMPORT = re.compile(r"^import \{([^}]*)\} from '([^']+)';\n", re.MULTILINE)
LATER = re.compile(r"\bimport\('([^']+)'\)(?!\.)")
"""A module that is asked for when it is needed; in one file it is there."""
EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def page(name: str) -> str:
    """Return the text of the page of a folder of src.

    Raises:
        ValueError: If a module imports or exports in a way that is not known here.
    """
    modules: dict[Path, str] = {}
    _add(modules, SOURCE / name / "page.js")
    parts = ("\nconst modules = {};\n", *modules.values(), f"modules['{name}/page.js'].start(document);\n")
    script = "".join(parts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = (SOURCE / name / "page.html").read_text(encoding="utf-8")
    survey = SOURCE / name / "survey.toml"
    if survey.exists():
        from hubbub import Survey  # noqa: PLC0415 - pages without a survey need no package

        text = text.replace("{survey}", Survey.load(survey).canonical.hex())
    return text.replace("{hash}", f"sha256-{digest}").replace("{script}", script)


def _add(modules: dict[Path, str], path: Path) -> None:
    """Add a module's function, behind those of what it imports."""
    if path in modules:
        return
    text = path.read_text(encoding="utf-8")
    for other in (*(other for _, other in IMPORT.findall(text)), *LATER.findall(text)):
        _add(modules, (path.parent / other).resolve())

    def own(other: str) -> str:
        return f"modules['{(path.parent / other).resolve().relative_to(SOURCE).as_posix()}']"

    def bound(found: re.Match[str]) -> str:
        return f"const {{{found[1].replace(' as ', ': ')}}} = {own(found[2])};\n"

    names = [name for _, name in EXPORT.findall(text)]
    body = LATER.sub(lambda found: own(found[1]), IMPORT.sub(bound, EXPORT.sub(r"\1 \2", text)))
    if left := re.search(r"^(import|export)\b.*|</script", body, re.MULTILINE):
        raise ValueError(f"{path.name} must import and export by name, got {left[0]!r}")
    name = path.relative_to(SOURCE).as_posix()
    modules[path] = f"modules['{name}'] = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


if __name__ == "__main__":
    (out := Path(sys.argv[2])).parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(sys.argv[1]), encoding="utf-8")
