# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed: the command line. Exit status: 0 success, 1 failure, 2 wrong usage or wrong input."""

from __future__ import annotations

if __name__ == "__main__":  # first: may restart in the project's own Python
    from .base import bootstrap  # noqa: F401

# isort: split
import argparse
import shlex
import signal
import sys

from .base.errors import LbeError
from .campaign import oracle
from .commands import evaluate, listing, running, shell, show, speed
from .commands.shared import EXAMPLES
from .foreign import command as foreign
from .proof import command as proof
from .proof import downloads
from .robustness import command as abuse
from .robustness import soak

#: modules of the subcommands; each adds its parser and the function that runs it
VERBS = (listing, running, speed, evaluate, show, abuse, soak, foreign, proof, downloads, oracle, shell)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m testbed",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Less-than-best-effort transport on real kernels in virtual time: experiments and their results.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for verb in VERBS:
        verb.add_parser(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    args = _parser().parse_args(argv)
    args.command_line = shlex.join(["python3", "-m", "testbed", *sys.argv[1:]])
    # SIGTERM raises an exception, so that clean-up runs as it does for Ctrl-C
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status: int = args.do(args)
        return status
    except KeyboardInterrupt:
        print("interrupted; nothing is left running, and the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
    except LbeError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
