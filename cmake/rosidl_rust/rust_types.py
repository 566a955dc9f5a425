"""Which Rust type stands for a member, and the expressions that convert between the two sides.

Each member has two types: one with the memory layout of the C message (`rmw`), and one that users handle
(idiomatic: `String`, `Vec`, arrays). Bounded strings and sequences keep the runtime's type on both sides, so
that a bound cannot be broken. Only names types; writes no items and reads no files.
"""
from __future__ import annotations

from collections.abc import Iterator

from rosidl_parser.definition import (
    AbstractGenericString, AbstractNestedType, AbstractWString, Array, BasicType, BoundedSequence, BoundedString,
    BoundedWString, NamespacedType, UnboundedSequence)

RT = "rosidl_runtime_rs"
BASIC = {
    "boolean": "bool", "octet": "u8", "char": "u8", "wchar": "u16", "float": "f32", "double": "f64",
    "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
    "int64": "i64", "uint64": "u64",
}
KEYWORDS = frozenset(
    "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if "
    "impl in let loop macro match mod move mut override priv pub ref return self Self static struct super trait true "
    "try type typeof unsafe unsized use virtual where while yield".split())


class UnsupportedType(Exception):
    """A type without a Rust counterpart of the same layout."""


def rust_name(name: str) -> str:
    """The Rust name of a member: keywords get an underscore."""
    return f"{name}_" if name in KEYWORDS else name


def basic(kind: BasicType) -> str:
    """The primitive of the same size."""
    if kind.typename not in BASIC:
        raise UnsupportedType(f"type {kind.typename} has no Rust counterpart")
    return BASIC[kind.typename]


def is_bounded(kind) -> bool:
    """Whether the runtime's own type is used on both sides to keep a bound."""
    return isinstance(kind, (BoundedString, BoundedWString, BoundedSequence))


def is_plain(kind) -> bool:
    """Whether both sides use the same type."""
    if isinstance(kind, Array):
        return is_plain(kind.value_type)
    return isinstance(kind, BasicType) or is_bounded(kind)


def is_copy(kind) -> bool:
    """Whether the type is `Copy`: primitives and arrays of them."""
    return isinstance(kind.value_type if isinstance(kind, Array) else kind, BasicType)


def rmw_type(kind) -> str:
    """The type with the layout of the C member."""
    if isinstance(kind, BasicType):
        return basic(kind)
    if isinstance(kind, BoundedString):
        return f"{RT}::BoundedString<{kind.maximum_size}>"
    if isinstance(kind, BoundedWString):
        return f"{RT}::BoundedWString<{kind.maximum_size}>"
    if isinstance(kind, AbstractGenericString):
        return f"{RT}::WString" if isinstance(kind, AbstractWString) else f"{RT}::String"
    if isinstance(kind, NamespacedType):
        return "::".join(["crate", *kind.namespaces, "rmw", kind.name])
    if isinstance(kind, Array):
        return f"[{rmw_type(kind.value_type)}; {kind.size}]"
    if isinstance(kind, BoundedSequence):
        return f"{RT}::BoundedSequence<{rmw_type(kind.value_type)}, {kind.maximum_size}>"
    if isinstance(kind, UnboundedSequence):
        return f"{RT}::Sequence<{rmw_type(kind.value_type)}>"
    raise UnsupportedType(f"type {kind!r} has no Rust counterpart")


def idiomatic_type(kind) -> str:
    """The type that users handle."""
    if is_bounded(kind) or isinstance(kind, BasicType):
        return rmw_type(kind)
    if isinstance(kind, AbstractGenericString):
        return "std::string::String"
    if isinstance(kind, NamespacedType):
        return "::".join(["crate", *kind.namespaces, kind.name])
    if isinstance(kind, Array):
        return f"[{idiomatic_type(kind.value_type)}; {kind.size}]"
    return f"std::vec::Vec<{idiomatic_type(kind.value_type)}>"


def _convert_message(kind, cow: str) -> str:
    return f"<{idiomatic_type(kind)} as {RT}::Message>::into_rmw_message(std::borrow::Cow::{cow}).into_owned()"


def into_rmw(kind, value: str) -> str:
    """An expression that turns the owned idiomatic `value` into the C layout."""
    if is_plain(kind):
        return value
    if isinstance(kind, AbstractGenericString):
        return f"{value}.as_str().into()"
    if isinstance(kind, NamespacedType):
        return _convert_message(kind, f"Owned({value})")
    if isinstance(kind, Array):
        return f"{value}.map(|element| {into_rmw(kind.value_type, 'element')})"
    if isinstance(kind.value_type, BasicType):
        return f"{value}.as_slice().into()"
    return f"{value}.into_iter().map(|element| {into_rmw(kind.value_type, 'element')}).collect()"


def borrowed_into_rmw(kind, value: str) -> str:
    """An expression that copies the borrowed idiomatic place `value` into the C layout."""
    if is_copy(kind):
        return value
    if is_plain(kind):
        return f"{value}.clone()"
    if isinstance(kind, AbstractGenericString):
        return f"{value}.as_str().into()"
    if isinstance(kind, NamespacedType):
        return _convert_message(kind, f"Borrowed(&{value})")
    if isinstance(kind, Array):
        return f"std::array::from_fn(|index| {borrowed_into_rmw(kind.value_type, f'{value}[index]')})"
    if isinstance(kind.value_type, BasicType):
        return f"{value}.as_slice().into()"
    return f"{value}.iter().map(|element| {borrowed_into_rmw(kind.value_type, '(*element)')}).collect()"


def from_rmw(kind, value: str) -> str:
    """An expression that turns the owned C layout `value` into the idiomatic type."""
    if is_plain(kind):
        return value
    if isinstance(kind, AbstractGenericString):
        return f"{value}.to_string()"
    if isinstance(kind, NamespacedType):
        return f"<{idiomatic_type(kind)} as {RT}::Message>::from_rmw_message({value})"
    if isinstance(kind, Array):
        return f"{value}.map(|element| {from_rmw(kind.value_type, 'element')})"
    if isinstance(kind.value_type, BasicType):
        return f"{value}.into()"
    return f"{value}.into_iter().map(|element| {from_rmw(kind.value_type, 'element')}).collect()"


def packages_of(kind) -> Iterator[str]:
    """The packages whose messages a type is made of."""
    if isinstance(kind, NamespacedType):
        yield kind.namespaces[0]
    elif isinstance(kind, AbstractNestedType):
        yield from packages_of(kind.value_type)


def _escaped(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"


def constant(item) -> str:
    """One constant as an associated constant."""
    name = rust_name(item.name)
    if isinstance(item.type, AbstractGenericString):
        return f"pub const {name}: &'static str = \"{''.join(map(_escaped, str(item.value)))}\";"
    kind = basic(item.type)
    if kind == "bool":
        value = str(bool(item.value)).lower()
    elif kind in ("f32", "f64"):
        value = repr(float(item.value))
    else:
        value = str(ord(item.value) if isinstance(item.value, str) else int(item.value))
    return f"pub const {name}: {kind} = {value};"
