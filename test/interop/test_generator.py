"""The Rust generator on one definition that has every kind of field."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GENERATOR = Path(__file__).resolve().parents[2] / "cmake/rosidl_rust"
KINDS = """
module kinds {
  module msg {
    typedef double double__2[2];
    module Every_Constants {
      const int32 NEGATIVE = -5;
      const boolean YES = TRUE;
      const float REAL = 0.5;
      const string TEXT = "say \\"hi\\" \\\\ there";
    };
    struct Every {
      octet raw;
      wchar wide;
      long number;
      boolean type;
      double__2 pair;
      string<4> short_text;
      wstring<4> short_wide_text;
      sequence<string<4>> short_texts;
      sequence<string, 3> few_texts;
      sequence<wstring> wide_texts;
      sequence<other::msg::Thing> things;
      sequence<other::msg::Thing, 3> few_things;
    };
  };
};
"""
RT = "rosidl_runtime_rs"
IDIOMATIC = {
    "raw": "u8", "wide": "u16", "number": "i32", "type_": "bool", "pair": "[f64; 2]",
    "short_text": f"{RT}::BoundedString<4>", "short_wide_text": f"{RT}::BoundedWString<4>",
    "short_texts": f"std::vec::Vec<{RT}::BoundedString<4>>", "few_texts": f"{RT}::BoundedSequence<{RT}::String, 3>",
    "wide_texts": "std::vec::Vec<std::string::String>", "things": "std::vec::Vec<crate::other::msg::Thing>",
    "few_things": f"{RT}::BoundedSequence<crate::other::msg::rmw::Thing, 3>",
}
RMW = IDIOMATIC | {
    "short_texts": f"{RT}::Sequence<{RT}::BoundedString<4>>", "wide_texts": f"{RT}::Sequence<{RT}::WString>",
    "things": f"{RT}::Sequence<crate::other::msg::rmw::Thing>",
}


def run(output: Path, *packages: str) -> subprocess.CompletedProcess:
    """Calls the generator as CMake does."""
    flags = [flag for package in packages for flag in ("--package", package)]
    return subprocess.run([sys.executable, GENERATOR, "--output", output, *flags], capture_output=True, text=True,
                          check=False)


@pytest.fixture
def share(tmp_path) -> Path:
    """The folder of a package with one message."""
    (tmp_path / "kinds/msg").mkdir(parents=True)
    (tmp_path / "kinds/msg/Every.idl").write_text(KINDS, encoding="utf-8")
    return tmp_path / "kinds"


def members(text: str) -> dict[str, str]:
    """Names and types of the members of the only struct."""
    body = text.split("pub struct Every {\n")[1].split("\n}")[0]
    return dict(line.strip().removeprefix("pub ").rstrip(",").split(": ", 1) for line in body.splitlines())


def test_every_kind_has_its_type_on_both_sides(tmp_path, share):
    assert run(tmp_path / "out", f"kinds={share}").returncode == 0
    rust = tmp_path / "out/share/kinds/rust"
    assert members((rust / "src/msg.rs").read_text(encoding="utf-8")) == IDIOMATIC
    assert members((rust / "src/msg/rmw.rs").read_text(encoding="utf-8")) == RMW


def test_constants_keep_value_and_type(tmp_path, share):
    run(tmp_path / "out", f"kinds={share}")
    text = (tmp_path / "out/share/kinds/rust/src/msg.rs").read_text(encoding="utf-8")
    constants = [line.strip() for line in text.splitlines() if "pub const" in line]
    assert constants == [
        "pub const NEGATIVE: i32 = -5;", "pub const YES: bool = true;", "pub const REAL: f32 = 0.5;",
        r'''pub const TEXT: &'static str = "say \"hi\" \\ there";''']


def test_manifest_names_the_packages_that_members_come_from(tmp_path, share):
    run(tmp_path / "out", f"kinds={share}")
    manifest = (tmp_path / "out/share/kinds/rust/Cargo.toml").read_text(encoding="utf-8")
    assert 'other = "*"' in manifest and "kinds = " not in manifest
    assert manifest.endswith("[package.metadata.ros-env]\ninclude = true\n")


def test_nothing_is_written_when_nothing_changed(tmp_path, share):
    run(tmp_path / "out", f"kinds={share}")
    path = tmp_path / "out/share/kinds/rust/src/msg.rs"
    os.utime(path, (1, 1))
    run(tmp_path / "out", f"kinds={share}")
    assert path.stat().st_mtime == 1
    (share / "msg/Every.idl").write_text(KINDS.replace("-5", "-6"), encoding="utf-8")
    run(tmp_path / "out", f"kinds={share}")
    assert "NEGATIVE: i32 = -6" in path.read_text(encoding="utf-8")


def test_a_package_that_is_not_there_is_one_line(tmp_path):
    result = run(tmp_path, "kinds=/nowhere/kinds")
    assert result.returncode == 2
    assert result.stderr == "--package kinds=/nowhere/kinds: expected NAME=SHARE_DIR with an existing folder\n"


def test_a_type_without_counterpart_is_one_line(tmp_path, share):
    (share / "msg/Every.idl").write_text(KINDS.replace("long number", "long double number"), encoding="utf-8")
    result = run(tmp_path / "out", f"kinds={share}")
    assert result.returncode == 1
    assert result.stderr == "rosidl_rust: package kinds: type long double has no Rust counterpart\n"
