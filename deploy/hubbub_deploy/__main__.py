"""`python -m hubbub_deploy`: the `hubbub` command where no script is installed."""

import sys

from hubbub_deploy.cli import main

if __name__ == "__main__":
    sys.exit(main())
