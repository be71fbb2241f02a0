"""What the trainers share."""

from diorama.core.errors import InputError


def check_positive(name: str, **values: float) -> None:
    """Raise InputError unless every value is above zero."""
    for parameter, value in values.items():
        if not value > 0:
            raise InputError(f"{name}: {parameter}={value}: give a number above 0")
