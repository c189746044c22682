"""`python -m poc.cli`: the same as the console script."""

from poc.cli import main

main()
