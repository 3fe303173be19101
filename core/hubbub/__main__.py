"""`python -m hubbub`: the `hubbub` command where no script is on the path."""

import runpy

if __name__ == "__main__":
    # By name: core imports nothing from above it, and the command is a part of the same distribution.
    runpy.run_module("hubbub_deploy", run_name="__main__", alter_sys=True)
