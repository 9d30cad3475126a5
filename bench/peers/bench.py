"""Bench as a package for programs that are run by their path, which find this folder first."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1])]
