"""Writes the Rust folder of interface packages, in the layout that the crate ros-env 0.3 reads.

`python3 cmake/rosidl_rust --output DIR --package NAME=SHARE_DIR...` reads every .idl below SHARE_DIR/msg,
SHARE_DIR/srv and SHARE_DIR/action and writes DIR/share/NAME/rust/{Cargo.toml,src/KIND.rs,src/KIND/rmw.rs}.
Used only for packages that come without a Rust folder of their own; a folder that is up to date is left alone.
"""
from __future__ import annotations

import argparse
import hashlib
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
GROUPS = ("msg", "srv", "action")
HEADER = "// Generated from the package's interface definitions.\n"
STAMP = ".inputs"


@dataclass
class Module:
    """The text of one group (`msg`, `srv` or `action`) on both sides."""

    idiomatic: str = HEADER
    rmw: str = HEADER
    dependencies: set[str] = field(default_factory=set)

    def add_message(self, message) -> None:
        """Adds a message."""
        from messages import Item
        item = Item(message)
        self.idiomatic += item.idiomatic()
        self.rmw += item.rmw()
        self.dependencies |= item.dependencies()

    def add_service(self, found) -> None:
        """Adds a service type; its messages are added on their own."""
        from services import service
        package, group = found.namespaced_type.namespaces
        here = f"crate::{package}::{group}"
        self.idiomatic += service(package, group, found.namespaced_type.name, here)
        self.rmw += service(package, group, found.namespaced_type.name, f"{here}::rmw")

    def add_action(self, found) -> None:
        """Adds an action with all its messages and services."""
        from services import action, action_messages, action_services
        for message in action_messages(found):
            self.add_message(message)
        for service in action_services(found):
            self.add_service(service)
        self.idiomatic += action(found.namespaced_type.namespaces[0], found.namespaced_type.name)
        self.dependencies |= {"action_msgs", "builtin_interfaces", "unique_identifier_msgs"}


def read_group(share: Path, group: str) -> Module | None:
    """The types defined in `share/<group>`, or None where there are none."""
    from rosidl_parser.definition import Action, IdlLocator, Message, Service
    from rosidl_parser.parser import parse_idl_file
    module, paths = Module(), sorted((share / group).glob("*.idl"))
    for path in paths:
        content = parse_idl_file(IdlLocator(share, path.relative_to(share))).content
        for message in content.get_elements_of_type(Message):
            module.add_message(message)
        for service in content.get_elements_of_type(Service):
            module.add_message(service.request_message)
            module.add_message(service.response_message)
            module.add_service(service)
        for action in content.get_elements_of_type(Action):
            module.add_action(action)
    return module if paths else None


def write(path: Path, text: str) -> None:
    """Writes a file if its content changes, so that cargo does not build it again for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def manifest(package: str, dependencies: set[str]) -> str:
    """The Cargo.toml; dependencies of any version tell ros-env which packages this one needs."""
    lines = [f'[package]\nname = "{package}"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]',
             'rosidl_runtime_rs = "0.7"']
    lines += [f'{name} = "*"' for name in sorted(dependencies - {package})]
    return "\n".join(lines) + "\n\n[package.metadata.ros-env]\ninclude = true\n"


def inputs(package: str, share: Path) -> str:
    """A hash over everything that the folder of a package depends on."""
    total = hashlib.sha256(package.encode())
    sources = [path for group in GROUPS for path in sorted((share / group).glob("*.idl"))]
    for path in [*sorted(HERE.glob("*.py")), *sources]:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def generate(package: str, share: Path, output: Path) -> None:
    """Writes the Rust folder of one package, unless it is up to date."""
    folder = output / "share" / package / "rust"
    stamp, wanted = folder / STAMP, inputs(package, share)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    modules = {group: module for group in GROUPS if (module := read_group(share, group)) is not None}
    for group, module in modules.items():
        write(folder / "src" / f"{group}.rs", module.idiomatic)
        write(folder / "src" / group / "rmw.rs", module.rmw)
    write(folder / "src/lib.rs", "".join(f"pub mod {group};\n" for group in modules))
    dependencies = set().union(*(module.dependencies for module in modules.values()))
    write(folder / "Cargo.toml", manifest(package, dependencies))
    stamp.write_text(wanted, encoding="utf-8")


def attempt(package: str, share: Path, output: Path) -> str | None:
    """Generates one package; returns what went wrong in one line."""
    try:
        from rust_types import UnsupportedType
    except ModuleNotFoundError as error:
        return f"{error}: install rosidl_parser and lark for {sys.executable}"
    try:
        generate(package, share, output)
    except UnsupportedType as error:
        return f"package {package}: {error}"
    return None


def main() -> int:
    """Generates every package named."""
    parser = argparse.ArgumentParser(prog="rosidl_rust", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="prefix that gets share/NAME/rust")
    parser.add_argument("--package", action="append", required=True, metavar="NAME=SHARE_DIR")
    args = parser.parse_args()
    for entry in args.package:
        match = re.fullmatch(r"(\w+)=(.+)", entry)
        if match is None or not Path(match[2]).is_dir():
            print(f"--package {entry}: expected NAME=SHARE_DIR with an existing folder", file=sys.stderr)
            return 2
        said = attempt(match[1], Path(match[2]), args.output)
        if said:
            print(f"rosidl_rust: {said}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
