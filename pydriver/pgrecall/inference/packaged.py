"""Find the models that were trained for pgrecall: in the driver or in package pgrecall-models."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MODELS = "pgrecall_models"


def directory(name: str) -> Path:
    """Return the directory of a model: in the driver, else in package pgrecall-models.

    A checkout has the models in the driver, a release in that package. If neither has the model,
    the driver's path is returned.
    """
    own = Path(__file__).parents[1] / name
    spec = None if own.is_dir() else find_spec(MODELS)
    places = (spec.submodule_search_locations if spec else None) or ()
    return next((Path(place) / name for place in places), own)
