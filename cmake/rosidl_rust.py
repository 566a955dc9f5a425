#!/usr/bin/env python3
"""Writes the Rust folder of an interface package, in the layout that the crate ros-env reads.

`rosidl_rust.py --output DIR [--package NAME=SHARE_DIR]... ` reads every .idl below SHARE_DIR/msg and
SHARE_DIR/srv (and the messages of actions are left out: nothing here uses them) and writes
DIR/share/NAME/rust/{Cargo.toml,src/msg.rs,src/msg/rmw.rs,src/srv.rs,src/srv/rmw.rs}.

Two types come of each message: one with the memory layout of the C message (`rmw`), which the middleware
reads and writes in place, and an idiomatic one with `String`, `Vec` and arrays. Used only for packages that
come without a Rust folder of their own.
"""
from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from rosidl_parser.definition import (
    AbstractGenericString, AbstractSequence, AbstractWString, Array, BasicType, BoundedSequence, BoundedString,
    BoundedWString, IdlLocator, Message, NamespacedType, Service, UnboundedSequence)
from rosidl_parser.parser import parse_idl_file

BASIC = {
    "boolean": "bool", "octet": "u8", "char": "u8", "float": "f32", "double": "f64", "long double": "f64",
    "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
    "int64": "i64", "uint64": "u64", "wchar": "u16",
}
KEYWORDS = set(
    "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if "
    "impl in let loop macro match mod move mut override priv pub ref return self Self static struct super trait true "
    "try type typeof unsafe unsized use virtual where while yield".split())
RT = "rosidl_runtime_rs"
HEADER = "// Generated from the package's interface definitions.\n"


def field_name(name: str) -> str:
    """The Rust name of a member: keywords get an underscore."""
    return f"{name}_" if name in KEYWORDS else name


def rmw_type(kind) -> str:
    """The type with the layout of the C member."""
    if isinstance(kind, BasicType):
        return BASIC[kind.typename]
    if isinstance(kind, BoundedString):
        return f"{RT}::BoundedString<{kind.maximum_size}>"
    if isinstance(kind, BoundedWString):
        return f"{RT}::BoundedWString<{kind.maximum_size}>"
    if isinstance(kind, AbstractGenericString):
        return f"{RT}::WString" if isinstance(kind, AbstractWString) else f"{RT}::String"
    if isinstance(kind, NamespacedType):
        package, group = kind.namespaces
        return f"crate::{package}::{group}::rmw::{kind.name}"
    if isinstance(kind, Array):
        return f"[{rmw_type(kind.value_type)}; {kind.size}]"
    if isinstance(kind, BoundedSequence):
        return f"{RT}::BoundedSequence<{rmw_type(kind.value_type)}, {kind.maximum_size}>"
    if isinstance(kind, UnboundedSequence):
        return f"{RT}::Sequence<{rmw_type(kind.value_type)}>"
    raise TypeError(f"no Rust type for {kind!r}")


def is_bounded(kind) -> bool:
    """Bounded types keep their runtime type on the idiomatic side, so that the bound cannot be broken."""
    return isinstance(kind, (BoundedString, BoundedWString, BoundedSequence))


def idiomatic_type(kind) -> str:
    """The type that users handle."""
    if is_bounded(kind) or isinstance(kind, BasicType):
        return rmw_type(kind)
    if isinstance(kind, AbstractGenericString):
        return "std::string::String"
    if isinstance(kind, NamespacedType):
        package, group = kind.namespaces
        return f"crate::{package}::{group}::{kind.name}"
    if isinstance(kind, Array):
        return f"[{idiomatic_type(kind.value_type)}; {kind.size}]"
    return f"Vec<{idiomatic_type(kind.value_type)}>"


def is_plain(kind) -> bool:
    """Whether both sides use the same type."""
    if isinstance(kind, Array):
        return is_plain(kind.value_type)
    return isinstance(kind, BasicType) or is_bounded(kind)


def into_rmw(kind, value: str) -> str:
    """An expression that turns the owned idiomatic `value` into the C layout."""
    if is_plain(kind):
        return value
    if isinstance(kind, AbstractGenericString):
        return f"{value}.as_str().into()"
    if isinstance(kind, NamespacedType):
        return (f"<{idiomatic_type(kind)} as {RT}::Message>::into_rmw_message("
                f"std::borrow::Cow::Owned({value})).into_owned()")
    element = into_rmw(kind.value_type, "element")
    if isinstance(kind, Array):
        return f"{value}.map(|element| {element})"
    if isinstance(kind.value_type, BasicType):
        return f"{value}.into()"
    return f"{value}.into_iter().map(|element| {element}).collect()"


def from_rmw(kind, value: str) -> str:
    """An expression that turns the owned C layout `value` into the idiomatic type."""
    if is_plain(kind):
        return value
    if isinstance(kind, AbstractGenericString):
        return f"{value}.to_string()"
    if isinstance(kind, NamespacedType):
        return f"<{idiomatic_type(kind)} as {RT}::Message>::from_rmw_message({value})"
    element = from_rmw(kind.value_type, "element")
    if isinstance(kind, Array):
        return f"{value}.map(|element| {element})"
    if isinstance(kind.value_type, BasicType):
        return f"{value}.into()"
    return f"{value}.into_iter().map(|element| {element}).collect()"


def constant(item) -> str:
    """One constant as an associated constant."""
    if isinstance(item.type, AbstractGenericString):
        text = str(item.value).replace("\\", "\\\\").replace('"', '\\"')
        return f'pub const {item.name}: &\'static str = "{text}";'
    kind = BASIC[item.type.typename]
    value = {"bool": lambda v: str(bool(v)).lower(), "f32": lambda v: repr(float(v)), "f64": lambda v: repr(float(v))}
    return f"pub const {item.name}: {kind} = {value.get(kind, lambda v: str(int(v)))(item.value)};"


def doc(annotated, indent: str = "") -> str:
    """The comments of a definition as documentation."""
    lines = [line.strip() for line in annotated.get_comment_lines()] if annotated.has_annotation("verbatim") else []
    return "".join(f"{indent}/// {line}\n".replace("/// \n", "///\n") for line in lines)


@dataclass(frozen=True)
class Item:
    """One message with the constants that belong to it."""

    package: str
    group: str
    message: Message

    @property
    def name(self) -> str:
        """The Rust type's name."""
        return self.message.structure.namespaced_type.name

    @property
    def symbol(self) -> str:
        """The prefix of the C functions."""
        return f"{self.package}__{self.group}__{self.name}"

    @property
    def members(self):
        """The members in order."""
        return self.message.structure.members

    def constants(self) -> str:
        """An impl block with the constants, if there are any."""
        if not self.message.constants:
            return ""
        body = "".join(f"    #[allow(missing_docs)]\n    {constant(item)}\n" for item in self.message.constants)
        return f"impl {self.name} {{\n{body}}}\n"

    def struct(self, type_of, attributes: str) -> str:
        """The struct itself."""
        fields = "".join(f"{doc(member, '    ')}    pub {field_name(member.name)}: {type_of(member.type)},\n"
                         for member in self.members)
        return (f"{doc(self.message.structure)}#[allow(non_camel_case_types, missing_docs)]\n{attributes}"
                f"#[derive(Clone, Debug, PartialEq, PartialOrd)]\npub struct {self.name} {{\n{fields}}}\n")

    def rmw(self) -> str:
        """Everything about the C layout."""
        support = f"rosidl_typesupport_c__get_message_type_support_handle__{self.symbol}"
        name, symbol = self.name, self.symbol
        return f"""
#[link(name = "{self.package}__rosidl_typesupport_c")]
extern "C" {{
    fn {support}() -> *const std::ffi::c_void;
}}
#[link(name = "{self.package}__rosidl_generator_c")]
extern "C" {{
    fn {symbol}__init(msg: *mut {name}) -> bool;
    fn {symbol}__Sequence__init(seq: *mut {RT}::Sequence<{name}>, size: usize) -> bool;
    fn {symbol}__Sequence__fini(seq: *mut {RT}::Sequence<{name}>);
    fn {symbol}__Sequence__copy(from: &{RT}::Sequence<{name}>, to: *mut {RT}::Sequence<{name}>) -> bool;
}}
{self.struct(rmw_type, "#[repr(C)]" + chr(10))}{self.constants()}impl Default for {name} {{
    fn default() -> Self {{
        // SAFETY: all-zero bytes are what the init function expects; it fills in every member.
        unsafe {{
            let mut msg = std::mem::zeroed();
            if !{symbol}__init(&mut msg as *mut _) {{
                panic!("{symbol}__init failed: out of memory");
            }}
            msg
        }}
    }}
}}
impl {RT}::SequenceAlloc for {name} {{
    fn sequence_init(seq: &mut {RT}::Sequence<Self>, size: usize) -> bool {{
        // SAFETY: the pointer comes from a reference.
        unsafe {{ {symbol}__Sequence__init(seq as *mut _, size) }}
    }}
    fn sequence_fini(seq: &mut {RT}::Sequence<Self>) {{
        // SAFETY: the pointer comes from a reference.
        unsafe {{ {symbol}__Sequence__fini(seq as *mut _) }}
    }}
    fn sequence_copy(in_seq: &{RT}::Sequence<Self>, out_seq: &mut {RT}::Sequence<Self>) -> bool {{
        // SAFETY: both pointers come from references.
        unsafe {{ {symbol}__Sequence__copy(in_seq, out_seq as *mut _) }}
    }}
}}
impl {RT}::Message for {name} {{
    type RmwMsg = Self;
    fn into_rmw_message(msg_cow: std::borrow::Cow<'_, Self>) -> std::borrow::Cow<'_, Self::RmwMsg> {{
        msg_cow
    }}
    fn from_rmw_message(msg: Self::RmwMsg) -> Self {{
        msg
    }}
}}
impl {RT}::RmwMessage for {name}
where
    Self: Sized,
{{
    const TYPE_NAME: &'static str = "{self.package}/{self.group}/{name}";
    fn get_type_support() -> *const std::ffi::c_void {{
        // SAFETY: the function has no preconditions.
        unsafe {{ {support}() }}
    }}
}}
"""

    def idiomatic(self) -> str:
        """Everything about the type that users handle."""
        def body(convert) -> str:
            return "".join(f"            {field_name(m.name)}: {convert(m.type, 'msg.' + field_name(m.name))},\n"
                           for m in self.members)
        rmw = f"crate::{self.package}::{self.group}::rmw::{self.name}"
        return f"""
{self.struct(idiomatic_type, "")}{self.constants()}impl Default for {self.name} {{
    fn default() -> Self {{
        <Self as {RT}::Message>::from_rmw_message({rmw}::default())
    }}
}}
impl {RT}::Message for {self.name} {{
    type RmwMsg = {rmw};
    fn into_rmw_message(msg_cow: std::borrow::Cow<'_, Self>) -> std::borrow::Cow<'_, Self::RmwMsg> {{
        let msg = msg_cow.into_owned();
        std::borrow::Cow::Owned(Self::RmwMsg {{
{body(into_rmw)}        }})
    }}
    fn from_rmw_message(msg: Self::RmwMsg) -> Self {{
        Self {{
{body(from_rmw)}        }}
    }}
}}
"""


def service(package: str, name: str, path: str) -> str:
    """A service type; `path` leads to its request and response."""
    support = f"rosidl_typesupport_c__get_service_type_support_handle__{package}__srv__{name}"
    return f"""
#[link(name = "{package}__rosidl_typesupport_c")]
extern "C" {{
    fn {support}() -> *const std::ffi::c_void;
}}
/// The service `{package}/srv/{name}`.
#[allow(non_camel_case_types)]
pub struct {name};
impl {RT}::Service for {name} {{
    type Request = {path}::{name}_Request;
    type Response = {path}::{name}_Response;
    fn get_type_support() -> *const std::ffi::c_void {{
        // SAFETY: the function has no preconditions.
        unsafe {{ {support}() }}
    }}
}}
"""


def dependencies(items: list[Item]) -> set[str]:
    """The packages whose types are members."""
    def packages(kind):
        if isinstance(kind, NamespacedType):
            yield kind.namespaces[0]
        elif isinstance(kind, (Array, AbstractSequence)):
            yield from packages(kind.value_type)
    return {name for item in items for member in item.members for name in packages(member.type)}


def read_group(package: str, share: Path, group: str) -> tuple[list[Item], list[str]]:
    """The messages and the service names of `share/msg` or `share/srv`."""
    items, services = [], []
    for path in sorted((share / group).glob("*.idl")):
        parsed = parse_idl_file(IdlLocator(share, path.relative_to(share))).content
        if group == "msg":
            items += [Item(package, group, message) for message in parsed.get_elements_of_type(Message)]
        for found in parsed.get_elements_of_type(Service):
            services.append(found.namespaced_type.name)
            items += [Item(package, group, message) for message in (found.request_message, found.response_message)]
    return items, services


def write(path: Path, text: str) -> None:
    """Writes a file if its content changes, so that cargo does not build it again for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(package: str, share: Path, output: Path) -> None:
    """Writes the Rust folder of one package."""
    folder = output / "share" / package / "rust"
    needed: set[str] = set()
    for group in ("msg", "srv"):
        items, services = read_group(package, share, group)
        if not items:
            continue
        needed |= dependencies(items)
        here = f"crate::{package}::{group}"
        idiomatic = "".join(item.idiomatic() for item in items)
        rmw = "".join(item.rmw() for item in items)
        idiomatic += "".join(service(package, name, here) for name in services)
        rmw += "".join(service(package, name, f"{here}::rmw") for name in services)
        write(folder / "src" / f"{group}.rs", HEADER + idiomatic)
        write(folder / "src" / group / "rmw.rs", HEADER + rmw)
    lines = [f'[package]\nname = "{package}"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]']
    lines += [f'{RT} = "0.7"'] + [f'{name} = "*"' for name in sorted(needed - {package})]
    write(folder / "Cargo.toml", "\n".join(lines) + "\n\n[package.metadata.ros-env]\ninclude = true\n")
    modules = [group for group in ("msg", "srv") if (folder / "src" / f"{group}.rs").exists()]
    write(folder / "src/lib.rs", "".join(f"pub mod {group};\n" for group in modules))


def main() -> int:
    """Generates every package named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="prefix that gets share/NAME/rust")
    parser.add_argument("--package", action="append", required=True, metavar="NAME=SHARE_DIR")
    args = parser.parse_args()
    for entry in args.package:
        match = re.fullmatch(r"(\w+)=(.+)", entry)
        if match is None or not Path(match[2]).is_dir():
            print(f"--package {entry}: expected NAME=SHARE_DIR with an existing folder", file=sys.stderr)
            return 2
        generate(match[1], Path(match[2]), args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
