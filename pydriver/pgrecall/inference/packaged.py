"""Where the models that were trained for pgrecall are: in the package, or in one of their own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MODELS = "pgrecall_models"


def directory(name: str) -> Path:
    """Return the directory of a model: beside the driver, else in package pgrecall-models.

    A checkout has them in the driver, a release as a package that is downloaded once; the
    driver's own place where they are in neither.
    """
    own = Path(__file__).parents[1] / name
    spec = None if own.is_dir() else find_spec(MODELS)
    places = (spec.submodule_search_locations if spec else None) or ()
    return next((Path(place) / name for place in places), own)
