"""Start time of the process; must be the first import."""

import time
from typing import Final

START: Final = time.perf_counter()
