"""Run the command as ``python -m pgrecall.command``."""

import sys

from pgrecall.command import main

sys.exit(main())
