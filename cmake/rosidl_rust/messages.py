"""Writes one message as Rust: the struct with the C layout for the middleware, the idiomatic struct, their
constants and the conversions between them. Knows nothing of files, services or actions.
"""
from __future__ import annotations

from dataclasses import dataclass

from rosidl_parser.definition import Message

from rust_types import (
    RT, borrowed_into_rmw, constant, from_rmw, idiomatic_type, into_rmw, packages_of, rmw_type, rust_name)


def doc(annotated, indent: str = "") -> str:
    """The comments of a definition as documentation."""
    lines = [line.strip() for line in annotated.get_comment_lines()] if annotated.has_annotation("verbatim") else []
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in lines)


@dataclass(frozen=True)
class Item:
    """One message with the constants that belong to it."""

    message: Message

    @property
    def kind(self):
        """The message's own type."""
        return self.message.structure.namespaced_type

    @property
    def name(self) -> str:
        """The Rust type's name."""
        return self.kind.name

    @property
    def package(self) -> str:
        """The package that the C symbols belong to."""
        return self.kind.namespaces[0]

    @property
    def symbol(self) -> str:
        """The prefix of the C functions."""
        return "__".join(self.kind.namespaced_name())

    @property
    def members(self) -> list:
        """The members in order."""
        return self.message.structure.members

    def dependencies(self) -> set[str]:
        """The packages whose messages are members."""
        return {name for member in self.members for name in packages_of(member.type)}

    def constants(self) -> str:
        """An impl block with the constants, if there are any."""
        if not self.message.constants:
            return ""
        body = "".join(f"{doc(item, '    ')}    #[allow(missing_docs)]\n    {constant(item)}\n"
                       for item in self.message.constants)
        return f"impl {self.name} {{\n{body}}}\n"

    def struct(self, type_of, attributes: str) -> str:
        """The struct itself."""
        fields = "".join(f"{doc(member, '    ')}    pub {rust_name(member.name)}: {type_of(member.type)},\n"
                         for member in self.members)
        return (f"{doc(self.message.structure)}#[allow(non_camel_case_types, missing_docs)]\n{attributes}"
                f"#[derive(Clone, Debug, PartialEq, PartialOrd)]\npub struct {self.name} {{\n{fields}}}\n")

    def _fields(self, convert) -> str:
        return "".join(f"            {rust_name(member.name)}: {convert(member.type, 'msg.' + rust_name(member.name))},\n"
                       for member in self.members)

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
    const TYPE_NAME: &'static str = "{"/".join(self.kind.namespaced_name())}";
    fn get_type_support() -> *const std::ffi::c_void {{
        // SAFETY: the function has no preconditions.
        unsafe {{ {support}() }}
    }}
}}
"""

    def idiomatic(self) -> str:
        """Everything about the type that users handle."""
        rmw = rmw_type(self.kind)
        return f"""
{self.struct(idiomatic_type, "")}{self.constants()}impl Default for {self.name} {{
    fn default() -> Self {{
        <Self as {RT}::Message>::from_rmw_message({rmw}::default())
    }}
}}
impl {RT}::Message for {self.name} {{
    type RmwMsg = {rmw};
    fn into_rmw_message(msg_cow: std::borrow::Cow<'_, Self>) -> std::borrow::Cow<'_, Self::RmwMsg> {{
        std::borrow::Cow::Owned(match msg_cow {{
            std::borrow::Cow::Owned(msg) => Self::RmwMsg {{
{self._fields(into_rmw)}            }},
            std::borrow::Cow::Borrowed(msg) => Self::RmwMsg {{
{self._fields(borrowed_into_rmw)}            }},
        }})
    }}
    fn from_rmw_message(msg: Self::RmwMsg) -> Self {{
        Self {{
{self._fields(from_rmw)}        }}
    }}
}}
"""
