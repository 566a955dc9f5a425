"""The launch files name only executables, files, arguments and parameters that exist.

They are read as XML here, because the wheels carry no `ros2 launch`; the executables themselves say which
parameters they have.
"""
import itertools
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = Path(os.environ["OPENLINK_INSTALL"])
FILES = sorted((ROOT / "launch").glob("*.launch.xml"))
SHARE = re.compile(r"\$\(find-pkg-share crazyflie_openlink\)/([\w./-]+)")
VARIABLE = re.compile(r"\$\(var ([\w.]+)\)")
KNOWN = re.compile(r"is unknown; this node has: (.*)")


def parameters(executable: str) -> set[str]:
    """The parameters that an executable says it has when it is given one that it has not."""
    command = [INSTALL / "lib/crazyflie_openlink" / executable, "--ros-args", "-p", "no_such_parameter:=1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode != 0
    return set(KNOWN.search(result.stderr)[1].strip().split(", "))


@pytest.fixture(scope="module")
def known_parameters():
    """Parameters by executable, asked once."""
    return {name: parameters(name) for name in ("bridge", "relay", "rtt", "domain_bridge")}


def test_all_six_are_there():
    names = {path.name.split(".")[0] for path in FILES}
    assert names == {"bench", "demo", "ground", "drone", "rtt", "cross_domain"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_argument_is_described_and_every_variable_declared(path):
    root = ElementTree.parse(path).getroot()
    declared = {arg.get("name") for arg in root.findall("arg")} | {let.get("name") for let in root.findall("let")}
    assert all(arg.get("description") for arg in root.findall("arg"))
    used = {name for element in root.iter() for value in element.attrib.values() for name in VARIABLE.findall(value)}
    assert used <= declared
    assert declared <= used, "an argument without any use"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_named_is_installed(path):
    for name in SHARE.findall(path.read_text(encoding="utf-8")):
        assert (INSTALL / "share/crazyflie_openlink" / name).is_file(), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_node_and_parameter_exists(path, known_parameters):
    for node in ElementTree.parse(path).getroot().findall("node"):
        assert node.get("pkg") == "crazyflie_openlink"
        have = known_parameters[node.get("exec")]
        named = {param.get("name") for param in node.findall("param")}
        assert named <= have, named - have


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_include_passes_declared_arguments(path):
    for include in ElementTree.parse(path).getroot().findall("include"):
        name = SHARE.search(include.get("file"))[1]
        declared = {arg.get("name") for arg in ElementTree.parse(ROOT / name).getroot().findall("arg")}
        assert {arg.get("name") for arg in include.findall("arg")} <= declared


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_openlink_subcommand_exists(path):
    for executable in ElementTree.parse(path).getroot().findall("executable"):
        words = re.sub(r"\$\([^)]*\)", "SUBSTITUTED", executable.get("cmd")).split()
        subcommands = itertools.takewhile(lambda word: word.isalpha() and word != "SUBSTITUTED", words[1:])
        command = [INSTALL / "bin/openlink", *subcommands, "--help"]
        help_text = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        assert all(word in help_text for word in words if word.startswith("--"))
