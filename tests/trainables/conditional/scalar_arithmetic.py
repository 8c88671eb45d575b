"""Vectors and matrices in plain floats, for the scalar reference."""

import math

Vector = list[float]
Matrix = list[list[float]]


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def dot(left: Vector, right: Vector) -> float:
    """Inner product."""
    total = 0.0
    for x, y in zip(left, right, strict=True):
        total += x * y
    return total


def add(left: Vector, right: Vector) -> Vector:
    """Sum of two vectors."""
    return [x + y for x, y in zip(left, right, strict=True)]


def subtract(left: Vector, right: Vector) -> Vector:
    """Difference of two vectors."""
    return [x - y for x, y in zip(left, right, strict=True)]


def scale(factor: float, vector: Vector) -> Vector:
    """A vector times a number."""
    return [factor * x for x in vector]


def times(matrix: Matrix, vector: Vector) -> Vector:
    """Matrix times vector."""
    return [dot(row, vector) for row in matrix]


def transposed_times(matrix: Matrix, vector: Vector) -> Vector:
    """Transposed matrix times vector."""
    return [dot(list(column), vector) for column in zip(*matrix, strict=True)]


def mix(probabilities: Vector, vectors: Matrix) -> Vector:
    """Sum of the vectors weighted by the probabilities."""
    mixture = [0.0] * len(vectors[0])
    for p, vector in zip(probabilities, vectors, strict=True):
        add_to(mixture, scale(p, vector))
    return mixture


def add_to(target: Vector, vector: Vector) -> None:
    """Add a vector to target in place."""
    for k in range(len(target)):
        target[k] += vector[k]


def add_outer(target: Matrix, left: Vector, right: Vector) -> None:
    """Add the outer product of left and right to target in place."""
    for row, x in zip(target, left, strict=True):
        add_to(row, scale(x, right))
