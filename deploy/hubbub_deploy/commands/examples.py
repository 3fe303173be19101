"""The example that the help of each command ends with."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

# Every line is parsed by a test, so that none names an option that is gone.
EXAMPLES = {
    "demo": "hubbub demo --seed 7",
    "replay": "hubbub replay people.csv --survey visits.toml --out out",
    "simulate": "hubbub simulate people.csv --collector http://127.0.0.1:8780 --compare",
    "audit": "hubbub audit visits.toml --samples 100000",
    "verify": "hubbub verify https://results.example.org --survey visits.toml",
    "survey": "hubbub survey new --id visits --epsilon 3 --integer 0 77 --out visits.toml",
    "survey check": "hubbub survey check visits.toml",
    "survey rehearse": "hubbub survey rehearse visits.toml --value visits=3",
    "survey consent": "hubbub survey consent visits.toml",
    "survey keygen": "hubbub survey keygen --out lists.pem",
    "survey sign": "hubbub survey sign visits.toml --key lists.pem --out list.json",
    "survey design": "hubbub survey design visits.toml --plot design.png",
    "survey compile": "hubbub survey compile visits.toml --out visits.bin",
    "agent": "hubbub agent page --ledger ledger.db",
    "agent answer": "hubbub agent answer --ledger ledger.db --collector http://127.0.0.1:8780"
    " --budget 4 --set visits=3 --join visits",
    "agent status": "hubbub agent status --ledger ledger.db",
    "agent sent": "hubbub agent sent --ledger ledger.db",
    "agent page": "hubbub agent page --ledger ledger.db",
    "agent pause": "hubbub agent pause --ledger ledger.db",
    "agent resume": "hubbub agent resume --ledger ledger.db",
    "agent join": "hubbub agent join --ledger ledger.db visits",
    "agent leave": "hubbub agent leave --ledger ledger.db visits",
    "agent forget": "hubbub agent forget --ledger ledger.db",
    "node": "hubbub node visits.toml --data data --port 8780",
    "export": "hubbub export data --out rounds.csv",
    "delete": "hubbub delete data --survey visits",
    "dead-letters": "hubbub dead-letters data",
    "config": "hubbub config check node.toml --of node",
    "config check": "hubbub config check node.toml --of node",
    "topic": "hubbub topic cluster.toml --partitions 16 --replication 3",
    "collector": "hubbub collector cluster.toml visits.toml",
    "aggregator": "hubbub aggregator cluster.toml --instance worker-1",
    "dashboard": "hubbub dashboard cluster.toml --data data",
    "issuer": "hubbub issuer serve issuer.pem --credentials credentials.txt --data issued.db",
    "issuer keygen": "hubbub issuer keygen issuer.pem",
    "issuer serve": "hubbub issuer serve issuer.pem --credentials credentials.txt --data issued.db",
    "add-partitions": "hubbub add-partitions cluster.toml --partitions 32 --replication 3",
    "skip-lost": "hubbub skip-lost cluster.toml --partition 3 --from 4711",
}


def add_examples(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """End the help of every command and verb with its example, but where it has some of its own."""
    for name, parser in named(commands):
        if parser.epilog is None and name in EXAMPLES:
            parser.epilog = f"example:\n  {EXAMPLES[name]}"
            parser.formatter_class = argparse.RawDescriptionHelpFormatter


def named(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], above: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Give each parser with the words that call it: a command before its verbs."""
    for word, parser in commands.choices.items():
        yield f"{above}{word}", parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from named(action, f"{above}{word} ")
