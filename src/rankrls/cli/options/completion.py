"""rankrls completion SHELL"""

from __future__ import annotations

import argparse

from .parser import command

EXAMPLE = (
    "add to ~/.bashrc: source <(rankrls completion bash); likewise for zsh; fish: rankrls completion fish | source"
)


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "completion", "print a script that lets a shell complete commands and options", EXAMPLE)
    made.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
