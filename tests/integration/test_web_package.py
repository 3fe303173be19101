"""The package of client/web: what npm packs is whole, has its types, and is imported by its name."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "client" / "web"
USE = """
import { Survey } from '@hubbub/device/survey';
import { openAgent } from '@hubbub/device';
const settings = { collector: 'https://a.example', budget: 1, attributes: [] };
const refused = await openAgent(settings).catch((error) => error.reason);
console.log(typeof Survey.read, refused);
"""
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        shutil.which("npm") is None or not (WEB / "node_modules" / "typescript").exists(),
        reason="npm with this package's TypeScript is not at hand",
    ),
]


def run(*words: str, folder: Path) -> str:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_is_packed_is_imported_by_its_name_and_has_types(tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules", "types"))
    (web / "node_modules").symlink_to(WEB / "node_modules")
    (packed,) = json.loads(run("npm", "pack", "--json", "--silent", folder=web))
    names = {each["path"] for each in packed["files"]}
    assert {"README.md", "package.json", "src/agent/agent.js", "types/src/agent/agent.d.ts"} <= names
    assert {name.split("/")[0] for name in names} == {"README.md", "package.json", "src", "types"}
    home = tmp_path / "app" / "node_modules" / "@hubbub"
    home.mkdir(parents=True)
    run("tar", "-xzf", packed["filename"], "-C", str(home), folder=web)
    (home / "package").rename(home / "device")
    (tmp_path / "app" / "use.mjs").write_text(USE)
    # Node has neither a secure page nor a database: the agent says so, in a word.
    assert run("node", "use.mjs", folder=tmp_path / "app").split() == ["function", "surroundings"]
