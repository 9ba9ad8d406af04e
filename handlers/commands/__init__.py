"""What each command of ``/hero`` answers; ``handlers/command.py`` lists them."""
