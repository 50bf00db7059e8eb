"""Entry point of ``python -m primax_core.vendor``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
