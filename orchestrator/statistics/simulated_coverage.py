"""What nominal 95 % intervals really cover, by simulation: `python benchmarks/coverage.py` prints these numbers."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Shape = Literal["normal", "skewed", "very skewed", "tied", "very tied"]
"""Normal; exponential (skewness 2); lognormal with sigma 1 (skewness 6.2); normal, rounded to steps of one or of two
standard deviations that start anywhere."""

SEEDS: Final = (3, 5, 10)


class Coverage(NamedTuple):
    """The shares of intervals that hold the true value.

    Attributes:
        paired: of differences of two conditions of one spread.
        unpaired: the same by Welch.
        unequal: by Welch where one spread is ten times the other.
    """

    mean: float
    paired: float
    unpaired: float
    unequal: float


REAL_COVERAGE: Final[Mapping[tuple[Shape, int], Coverage]] = {
    ("normal", 3): Coverage(0.9506, 0.9512, 0.9657, 0.9429),
    ("normal", 5): Coverage(0.9495, 0.9496, 0.9560, 0.9483),
    ("normal", 10): Coverage(0.9508, 0.9507, 0.9519, 0.9502),
    ("skewed", 3): Coverage(0.8849, 0.9675, 0.9743, 0.8734),
    ("skewed", 5): Coverage(0.8820, 0.9655, 0.9736, 0.8802),
    ("skewed", 10): Coverage(0.9014, 0.9572, 0.9624, 0.9006),
    ("very skewed", 3): Coverage(0.8389, 0.9735, 0.9797, 0.8296),
    ("very skewed", 5): Coverage(0.8198, 0.9756, 0.9807, 0.8224),
    ("very skewed", 10): Coverage(0.8387, 0.9677, 0.9724, 0.8435),
    ("tied", 3): Coverage(0.9091, 0.9377, 0.9663, 0.9319),
    ("tied", 5): Coverage(0.9474, 0.9498, 0.9554, 0.9485),
    ("tied", 10): Coverage(0.9510, 0.9516, 0.9522, 0.9512),
    ("very tied", 3): Coverage(0.7270, 0.8617, 0.9227, 0.8031),
    ("very tied", 5): Coverage(0.8891, 0.9410, 0.9559, 0.9083),
    ("very tied", 10): Coverage(0.9446, 0.9490, 0.9524, 0.9467),
}
