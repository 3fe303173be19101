"""The generated pages of the site: commands, settings, mechanisms, HTTP, Python, evidence, from the code."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FACES = (
    "hubbub",
    "hubbub.filter",
    "hubbub.mechanisms",
    "hubbub_authoring.mechanisms",
    "hubbub_client",
    "hubbub_results",
)


def write(folder: Path) -> None:
    """Write every generated page into a folder of its own, and an index of them."""
    folder.mkdir(exist_ok=True)
    pages = {
        "commands": commands(),
        "settings": settings(),
        "mechanisms": mechanisms(),
        "http": http(),
        "python": python(),
        "evidence": evidence(),
    }
    toc = "\n".join(["```{toctree}", *pages, "```"])
    pages["index"] = f"# Reference, made of the code\n\n{toc}\n"
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def commands() -> str:
    """Return what every command prints as its help."""
    from hubbub_deploy.cli import _parser, named  # noqa: PLC0415

    parser = _parser()
    actions = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    lines = ["# Commands", "", "```text", parser.format_help().strip(), "```"]
    for name, each in named(actions):
        level = "##" if " " not in name else "###"
        lines += ["", f"{level} hubbub {name}", "", "```text", each.format_help().strip(), "```"]
    return "\n".join(lines) + "\n"


def settings() -> str:
    """Return the settings of a node, of a collector and of a cluster as tables."""
    from hubbub_deploy import settings as face  # noqa: PLC0415
    from hubbub_deploy.cluster_settings import ClusterSettings  # noqa: PLC0415

    parts = ["# Settings", "", "Of a node: in its file, the environment, or on the command line.", ""]
    parts += [
        face.markdown(face.NODE),
        "Of its gateway, and of a collector:",
        "",
        face.markdown(face.GATEWAY),
        "Of a cluster, in the file that all of its processes read:",
        "",
        "| key | default | what it is |",
        "|---|---|---|",
    ]
    told = attributes(inspect.getdoc(ClusterSettings) or "")
    for each in fields(ClusterSettings):
        if each.default is not MISSING or each.default_factory is MISSING:
            default = "" if each.default in (MISSING, None) else f"`{each.default}`"
            parts.append(f"| `{each.name}` | {default} | {told[each.name]} |")
    return "\n".join(parts) + "\n"


def attributes(docstring: str) -> dict[str, str]:
    """Return what a class's docstring says of each of its attributes, by name."""
    section = docstring.partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.M)
    return {name: " ".join(text.split()) for name, text in found}


def mechanisms() -> str:
    """Return every mechanism of survey files with its purpose and the sentences of its keys."""
    from hubbub.survey.forms import forms_by_mechanism  # noqa: PLC0415
    from hubbub_authoring.mechanisms import registry  # noqa: PLC0415

    lines = ["# Mechanisms and their keys", "", "| name | for | asks about | keys |", "|---|---|---|---|"]
    for name, entry in registry.mechanisms().items():
        keys = "; ".join(key.sentence for key in entry.keys)
        lines.append(f"| `{name}` | {entry.purpose} | {', '.join(sorted(entry.takes))} | {keys} |")
    lines += ["", "A mechanism that makes a survey one of another form:", ""]
    for name, form in forms_by_mechanism().items():
        keys, terms = (", ".join(f"`{key}`" for key in found) for found in (form.keys, form.terms))
        lines.append(f"- `{name}`: {keys}; in every `[[attribute]]` {terms or 'nothing'}")
    return "\n".join(lines) + "\n"


def http() -> str:
    """Return the read API, path by path, from its OpenAPI document, and the columns of its tables."""
    from hubbub_aggregator.export import COLUMNS  # noqa: PLC0415
    from hubbub_aggregator.web.openapi import openapi_document  # noqa: PLC0415

    document: dict[str, Any] = openapi_document()
    lines = [f"# The read API, {document['info']['version']}", "", document["info"]["description"], ""]
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if method == "parameters":
                continue
            lines += [
                f"## {method.upper()} {path}",
                "",
                told.get("summary", ""),
                "",
                told.get("description", ""),
                "",
            ]
            for each in [*methods.get("parameters", []), *told.get("parameters", [])]:
                found = each
                if "$ref" in each:
                    found = document["components"]["parameters"][each["$ref"].rsplit("/", 1)[1]]
                lines.append(f"- `{found['name']}` ({found['in']}): {found.get('description', '')}")
            lines += ["", "| status | answer |", "|---|---|"]
            for status, told_answer in told["responses"].items():
                answer = told_answer
                if "$ref" in answer:
                    answer = document["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
                lines.append(f"| {status} | {' '.join(answer['description'].split())} |")
            lines.append("")
    lines += ["## Columns of the tables", "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{each.name}` | {each.sql} | {each.meaning} |" for each in COLUMNS]
    return "\n".join(lines) + "\n"


def python() -> str:
    """Return directives that take the docstring of every public name; one that several faces give, once."""
    lines, described = ["# Python", ""], set()
    for face in FACES:
        module = importlib.import_module(face)
        lines += [f"## {face}", "", (module.__doc__ or "").splitlines()[0], ""]
        for name in sorted(module.__all__):
            found = getattr(module, name)
            if not callable(found) or (where := (found.__module__, found.__qualname__)) in described:
                continue
            described.add(where)
            kind = "autofunction" if not isinstance(found, type) else "autoclass"
            if isinstance(found, type) and issubclass(found, BaseException):
                kind = "autoexception"
            members = ["   :members:"] if kind == "autoclass" else []
            lines += ["```{eval-rst}", f".. {kind}:: {face}.{name}", *members, "```", ""]
    return "\n".join(lines) + "\n"


def evidence() -> str:
    """Return the newest run under every name that has one."""
    sys.path.insert(0, str(ROOT / "bench"))
    module = importlib.import_module("evidence")
    parts = [
        "# Evidence",
        "",
        "The newest run of each, as it printed it. `make evidence NAME=...` makes one anew.",
        "",
    ]
    for path in sorted((ROOT / "evidence").glob("*.json")):
        text = module.markdown(path.stem, module.runs_of(path.stem))
        # A run's own headings lie below that of its name, and nothing in it is a footnote.
        head, _, rest = text.partition("\n")
        parts += [
            head.removeprefix("#"),
            re.sub(r"^#{3,} ", "### ", rest, flags=re.M).replace("[^", "\\[^"),
            "",
        ]
    return "\n".join(parts)


def link_files(_: object, name: str, source: list[str]) -> None:
    """Have links to a run's file lead to its part of the generated page, and others out of docs be text."""
    text = source[0]
    up = "../" * name.count("/")
    text = re.sub(
        r"\]\((?:\.\./)+evidence/([a-z-]+)\.json\)",
        lambda found: f"]({up}reference/evidence.md#{anchor(found[1])})",
        text,
    )
    source[0] = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?!reference|evidence)[^)]*\)", r"`\1`", text)


def escape(_: object, __: str, ___: str, ____: object, _____: object, lines: list[str]) -> None:
    """Have bars and trailing underscores of a docstring's formulas be what they are."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", line.replace("|", "\\|")) for line in lines]


def anchor(name: str) -> str:
    """Return the anchor of a run's heading: its name and sentence, as MyST makes it."""
    runs = sys.modules["evidence"].RUNS
    words = f"{name}: {runs[name].sentence}".lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
