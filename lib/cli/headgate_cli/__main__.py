"""``python -m headgate_cli``, for environments without the installed command."""

from headgate_cli.main import main

main()
