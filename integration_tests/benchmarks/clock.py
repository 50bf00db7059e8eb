"""When this process began to work; imported before anything else is."""

import time
from typing import Final

START: Final = time.perf_counter()
