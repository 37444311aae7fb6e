"""`headgate completion`: the script by which a shell completes commands, options, files and names of settings."""

from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

_PROGRAM: Final = "headgate"
_VARIABLE: Final = "_HEADGATE_COMPLETE"
"""Under which click answers the script; its name follows from the program's."""
_SHELLS: Final = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print a script for completion in your shell.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints the script by which SHELL completes commands, options, their values and files. It calls `headgate` at each Tab.

    \b
    Examples:
      headgate completion bash >> ~/.bashrc
      headgate completion zsh > "${fpath[1]}/_headgate"
      headgate completion fish > ~/.config/fish/completions/headgate.fish
    """  # noqa: D301 - click wants the backspace
    found = get_completion_class(shell)
    if found is None:
        raise CommandError(f"click knows no completion for {shell}", fix="Choose another shell.", code=ExitCode.USAGE)
    click.echo(found(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's
    """For arguments that are texts, because `-` and addresses are allowed, but mostly files."""
    return [CompletionItem(incomplete, type="file")]


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's
    """For KEY=VALUE and KEY."""
    from headgate_tables.face.settings import SETTINGS

    end = "=" if param.name == "changes" else ""
    found = [each for each in SETTINGS.values() if each.key.startswith(incomplete)]
    return [CompletionItem(each.key + end, help=each.about) for each in found]
