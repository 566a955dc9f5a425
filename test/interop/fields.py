"""Values for every kind of field, and a comparison that walks through every field.

The type of a field is what the message class itself declares (`SLOT_TYPES`), so new messages need no code here.
"""
from __future__ import annotations

import importlib
import random
from array import array
from collections.abc import Iterator

import numpy
from rosidl_parser.definition import (
    AbstractNestedType, AbstractString, AbstractWString, Array, BasicType, BoundedSequence, NamespacedType)

INTEGERS = {f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << (bits if sign else bits - 1)) - 1)
            for sign in ("", "u") for bits in (8, 16, 32, 64)}
FLOATS = {"float": (-2.0**127, 0.0, 1.5, float("inf")), "double": (-1.0e300, 0.0, 1.0 / 3.0, float("-inf"))}
WORDS = ("", "plain", "two\nlines", "ψ é ハ", 'quo"te\\')
UNBOUNDED = 5
"""Longest random sequence of an unbounded field."""


def load(kind: NamespacedType) -> type:
    """The Python class of a message type."""
    return getattr(importlib.import_module(".".join(kind.namespaces)), kind.name)


def fields(message) -> Iterator[tuple[str, object]]:
    """Name and type of each field."""
    return zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True)


class Values:
    """A source of values: a seeded one, or the longest and largest of everything."""

    def __init__(self, seed: int | None):
        self.random = random.Random(seed)
        self.largest = seed is None

    def message(self, kind: type):
        """A message with every field set."""
        message = kind()
        for name, member in fields(message):
            setattr(message, name, self.value(member))
        return message

    def value(self, kind):
        """A value of any kind of field."""
        if isinstance(kind, BasicType):
            return self.basic(kind.typename)
        if isinstance(kind, (AbstractString, AbstractWString)):
            return self.string(getattr(kind, "maximum_size", None))
        if isinstance(kind, NamespacedType):
            return self.message(load(kind))
        return [self.value(kind.value_type) for _ in range(self.length(kind))]

    def basic(self, name: str):
        """A primitive."""
        if name == "boolean":
            return self.largest or self.random.random() < 0.5
        if name == "octet":
            return bytes([255 if self.largest else self.random.randrange(256)])
        if name in FLOATS:
            return FLOATS[name][-1] if self.largest else self.random.choice(FLOATS[name][:-1])
        low, high = INTEGERS[name]
        return high if self.largest else self.random.choice((low, 0, 1, high, self.random.randint(low, high)))

    def string(self, bound: int | None) -> str:
        """A string within its bound, which counts bytes."""
        if self.largest:
            return "m" * (bound or 300)
        return self.random.choice([word for word in WORDS if bound is None or len(word.encode()) <= bound])

    def length(self, kind: AbstractNestedType) -> int:
        """How many elements."""
        if isinstance(kind, Array):
            return kind.size
        bound = kind.maximum_size if isinstance(kind, BoundedSequence) else UNBOUNDED
        return bound if self.largest else self.random.randint(0, bound)


def plain(value):
    """Sequences of any kind as lists."""
    return list(value) if isinstance(value, (list, tuple, array, numpy.ndarray)) else value


def differences(sent, got, path: str = "") -> list[str]:
    """Every field in which two messages differ."""
    sent, got = plain(sent), plain(got)
    if hasattr(sent, "get_fields_and_field_types"):
        return [line for name, _ in fields(sent)
                for line in differences(getattr(sent, name), getattr(got, name), f"{path}.{name}")]
    if isinstance(sent, list):
        if len(sent) != len(got):
            return [f"{path}: sent {len(sent)} elements, got {len(got)}"]
        return [line for index, pair in enumerate(zip(sent, got, strict=True))
                for line in differences(*pair, f"{path}[{index}]")]
    return [] if sent == got else [f"{path}: sent {sent!r}, got {got!r}"]
