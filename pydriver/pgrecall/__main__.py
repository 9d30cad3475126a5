"""Run the command as ``python -m pgrecall``."""

import sys

from pgrecall.command import main

sys.exit(main())
