"""LDP-Auditor itself on Hubbub's channels: an adapter for a checkout of ldp-audit, which is on no registry.

    .venv-peers/bin/python -m pip install ray psutil
    PYTHONPATH=CHECKOUT .venv-peers/bin/python bench/peers/published_auditor.py

where CHECKOUT holds the folder `ldp_audit` of github.com/hharcolezi/ldp-audit. Its auditor keeps protocols in
a table; each channel becomes one more entry there: draw reports of an input, guess from each, and count the
guesses of one input. All else - the trials, the bounds, the epsilon - is the tool's. A control that declares
half of its epsilon must be found. A bound above a certified epsilon, or a control not found: exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ray
from audited import channels, guessed, reports_of
from ldp_audit.base_auditor import LDPAuditor

from hubbub.channels import Channel

TRIALS, ALPHA, K = 200_000, 1e-6, 12


def protocol_of(channel: Channel) -> Callable[..., int]:
    """Return a protocol as the auditor keeps them: how many of some reports are guessed to be one input."""

    def protocol(_: object, _seed: int, trials: int, value: int, *asked: Any) -> int:
        guess, wanted = guessed(channel), asked[-1]
        return sum(guess(report) == wanted for report in reports_of(channel)(value, trials))

    return protocol


def main() -> int:
    """Print a row per channel, and the control; return the exit status."""
    made, status = channels(), 0
    auditor = LDPAuditor(nb_trials=TRIALS, alpha=ALPHA, epsilon=1.0, k=K)
    for name, channel in made.items():
        auditor.protocols[name] = ray.remote(protocol_of(channel))
    print("| mechanism | certified | LDP-Auditor finds at least | tightness |\n|---|---|---|---|")
    for name, channel in made.items():
        auditor.k, auditor.v2, auditor.epsilon = channel.inputs, channel.inputs - 1, channel.epsilon
        found = float(auditor.run_audit(name))
        status |= found > channel.epsilon
        print(f"| {name} | {channel.epsilon:.6f} | {found:.3f} | {found / channel.epsilon:.2f} |", flush=True)
    auditor.k, auditor.v2, auditor.epsilon, declared = K, K - 1, 0.5, 0.5
    found = float(auditor.run_audit("randomised response"))
    status |= found <= declared
    print(f"| randomised response that declares half (control) | {declared} | {found:.3f} | |")
    print(f"\n{TRIALS:,} reports of each of two inputs; a bound is false with probability {ALPHA:g} at most.")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
