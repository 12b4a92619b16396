"""`python -m unshuffle` is the command line."""

from unshuffle.cli import main

if __name__ == "__main__":
    main()
