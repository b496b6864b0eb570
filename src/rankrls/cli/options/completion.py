"""rankrls completion SHELL"""

from __future__ import annotations

import argparse

from .parser import command

EXAMPLES = (
    "source <(rankrls completion bash)     in ~/.bashrc",
    "source <(rankrls completion zsh)      in ~/.zshrc",
    "rankrls completion fish | source      in ~/.config/fish/config.fish",
)


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "completion", "print a script that lets a shell complete commands and options", *EXAMPLES)
    made.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
