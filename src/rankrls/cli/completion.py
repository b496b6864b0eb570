"""rankrls completion SHELL"""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterator

from .options import parser
from .text import say

BASH = """# completion of rankrls; source <(rankrls completion bash)
_rankrls() {{
    local command="${{COMP_WORDS[1]}}" word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    case "$command $before" in
{choices}
    esac
    if [ "${{word:0:1}}" = "-" ]; then
        case "$command" in
{options}
        esac
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _rankrls rankrls
"""
ZSH = "# completion of rankrls; source <(rankrls completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n"


def run(args: Namespace) -> None:
    script = {"bash": _bash, "zsh": lambda: ZSH + _bash(), "fish": _fish}[args.shell]()
    say(args, {"shell": args.shell, "script": script}, script.rstrip("\n"))


def _commands() -> dict[str, argparse.ArgumentParser]:
    found = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def _options(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """The long options of a command, and short ones such as -o that have no long name."""
    for action in command._actions:
        long = [name for name in action.option_strings if name.startswith("--")]
        if action.option_strings:
            yield (long or action.option_strings)[-1], action


def _bash() -> str:
    commands, choices, options = _commands(), [], []
    for name, command in commands.items():
        known = dict(_options(command))
        options.append(f'        {name}) COMPREPLY=($(compgen -W "{" ".join(known)}" -- "$word"));;')
        for option, action in known.items():
            if action.choices:
                words = " ".join(map(str, action.choices))
                choices.append(f'        "{name} {option}") COMPREPLY=($(compgen -W "{words}" -- "$word")); return;;')
    return BASH.format(commands=" ".join(commands), choices="\n".join(choices), options="\n".join(options))


def _fish() -> str:
    commands = _commands()
    lines = ["# completion of rankrls; rankrls completion fish | source"]
    for name, command in commands.items():
        text = (command.description or "").rstrip(".")
        lines.append(f"complete -c rankrls -n __fish_use_subcommand -a {name} -d {shlex.quote(text)}")
        for option, action in _options(command):
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            words = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
            words = words or (" -r" if action.nargs != 0 else "")
            text = shlex.quote(action.help or "")
            lines.append(f"complete -c rankrls -n '__fish_seen_subcommand_from {name}' {flag}{words} -d {text}")
    return "\n".join(lines) + "\n"
