"""``python -m gpuplan`` is the command ``gpuplan``."""

import sys

from gpuplan.cli import main

sys.exit(main())
