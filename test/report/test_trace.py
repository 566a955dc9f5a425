"""Packet logs through `openlink trace`, and through the tools that its exports are for."""
from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.fixture(scope="session")
def log(tmp_path_factory) -> Path:
    """200 link echoes with their answers, 4 of them sent again, 200 setpoints between them."""
    path = tmp_path_factory.mktemp("log") / "log.mcap"
    subprocess.run(["cargo", "run", "-q", "-p", "latency", "--example", "sample_log", "--", path], cwd=ROOT, check=True)
    return path


@pytest.fixture
def trace(openlink, log):
    def run(what: str, *flags: str | Path, file: Path = log, check: bool = True) -> subprocess.CompletedProcess:
        return subprocess.run([openlink, "trace", what, file, *flags], capture_output=True, text=True, timeout=60,
                              check=check)

    return run


def test_round_trips(trace):
    rtt = json.loads(trace("rtt", "--json").stdout)
    assert rtt["stages"] == ["G2", "G6"]
    assert (rtt["requests"], rtt["answered"], rtt["one_way"], rtt["resends"]) == (200, 200, 200, 4)
    first = rtt["rtt_us"]["first sending"]
    assert first["samples"] == 200 and 572 <= first["us"]["min"] <= first["us"]["p50"] <= first["us"]["max"] <= 1472
    assert first["us"]["p999"] is None, "200 samples give no p99.9"
    assert "port 15 channel 0" in trace("rtt").stdout


def test_inter_packet_times(trace):
    ipt = json.loads(trace("ipt", "--json").stdout)
    assert (ipt["stage"], ipt["packets"]) == ("G2", 404)
    assert ipt["ipt_us"]["all"]["samples"] == 403
    assert ipt["ipt_us"]["resend"]["us"]["p50"] == pytest.approx(292, rel=1e-2)


def test_stages_add_up(trace):
    stages = json.loads(trace("stages", "--json").stdout)
    by_name = {one["name"]: one for one in stages["durations"]}
    assert by_name["drone"]["samples"] == 200 and by_name["drone"]["correlation"] == pytest.approx(1)
    assert by_name["bridge in"]["missing"] == 200, "this log has no bridge"
    text = trace("stages").stdout
    assert "UART write" in text and "longest round trips" in text


def test_pages_are_drawn(trace, browser, tmp_path):
    for what in ("ipt", "rtt", "stages"):
        page = tmp_path / f"{what}.html"
        trace(what, "-o", page)
        dom = browser.dom(page)
        assert dom.count("<svg") == 2 and 'class="cursor"' in dom


def test_a_cut_log_is_read_and_named(trace, log, tmp_path):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(log.read_bytes()[:100_000])
    done = trace("rtt", "--json", file=cut)
    assert 10 < json.loads(done.stdout)["answered"] < 200
    assert "no end mark" in done.stderr


def test_logs_without_an_answer_exit_with_1(trace, tmp_path):
    junk = tmp_path / "junk.mcap"
    junk.write_bytes(b"no log")
    done = trace("rtt", file=junk, check=False)
    assert done.returncode == 1 and "junk.mcap: no packet log" in done.stderr


def test_csv_has_a_line_for_each_record(trace):
    lines = list(csv.DictReader(io.StringIO(trace("export", "--to", "csv").stdout)))
    assert len(lines) == 200 * 11 + 4 + 200
    assert lines[0]["host"] == "sample" and lines[0]["port"] == "15" and lines[0]["data"].startswith("f0")


def test_perfetto_is_valid_json_with_flows(trace):
    events = json.loads(trace("export", "--to", "perfetto").stdout)["traceEvents"]
    assert sum(event["ph"] == "s" for event in events) == 200


def test_other_readers_of_mcap_decode_it(log):
    """The reader and the ROS decoder of the format's authors, which Foxglove and PlotJuggler follow."""
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_ros2.decoder")
    with log.open("rb") as file:
        hops = [message for *_, message in
                reader.make_reader(file, decoder_factories=[decoder.DecoderFactory()]).iter_decoded_messages("/hops")]
    assert len(hops) == 200 * 11 + 4 + 200
    assert sum(hop.reason == 1 for hop in hops) == 4
    assert hops[0].size == 9 and bytes(hops[0].data)[0] == 0xF0


def test_wireshark_opens_the_capture(trace, tmp_path):
    """With CRTP_DISSECTOR set to Bitcraze's crtp-dissector.lua, the packets are decoded as well."""
    tshark = shutil.which("tshark")
    if not tshark:
        pytest.skip("no tshark")
    capture = tmp_path / "log.pcapng"
    trace("export", "--to", "pcapng", "-o", capture, "--stage", "G2")
    lua = os.environ.get("CRTP_DISSECTOR")
    command = [tshark, "-r", str(capture), *(["-X", f"lua_script:{lua}"] if lua else [])]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert len(lines) == 404
    if lua:
        assert sum("CRTP" in line and "Link Control" in line for line in lines) == 204
        assert sum(bool(re.search(r"CRTP.*\bCommander\b", line)) for line in lines) == 200


@pytest.fixture
def three_logs(openlink, tmp_path):
    """A client's echoes through two bridges to the simulated drone, with a log at each of the three."""
    drone, client, started = tmp_path / "drone", tmp_path / "client", []

    def start(name: str, *words: object, appears: Path | None = None) -> None:
        command = [openlink, *words, "--record", tmp_path / f"{name}.mcap"]
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL))
        end = time.monotonic() + 20
        while appears and not appears.exists():
            assert time.monotonic() < end, f"{appears} did not appear"
            time.sleep(0.02)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        start("drone", "sim", "--uart", drone, appears=drone)
        start("far", "bridge", "--from", f"uart://{drone}", "--to", f"prrt://127.0.0.1:{port}?listen=1")
        start("near", "bridge", "--from", f"pty://{client}", "--to", f"prrt://127.0.0.1:{port}", appears=client)
        subprocess.run([openlink, "ping", f"uart://{client}", "--bytes", "16", "--rate", "200", "--count", "200",
                        "--warmup", "0"], check=True, capture_output=True, timeout=60)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
    return [tmp_path / f"{name}.mcap" for name in ("near", "far", "drone")]


def test_a_packet_in_three_logs_is_one_with_its_stamps_in_order(openlink, three_logs):
    """Clocks of the taps of one process were a few nanoseconds apart: packets seemed to leave before they came."""
    table = subprocess.run([openlink, "trace", "export", "--to", "csv", *three_logs], check=True, capture_output=True,
                           text=True).stdout
    stamps: dict[str, dict[str, int]] = {}
    for line in csv.DictReader(io.StringIO(table)):
        if line["port"] == "15":
            stamps.setdefault(line["packet"], {}).setdefault(line["stage"], int(line["mono_ns"]))
    out, back = ["G0", "G1", "G2", "B1", "UQ", "U0", "UC", "U1"], ["U0", "U3", "U4", "U5", "B3", "G6", "G7"]
    whole = [packet for packet in stamps.values() if {*out, *back, "D0", "D1"} <= set(packet)]
    assert len(whole) >= 195, f"{len(whole)} of {len(stamps)} packets have every stamp"
    for packet in whole:
        for way in (out, back):
            times = [packet[stage] for stage in way]
            assert times == sorted(times), packet
    stages = json.loads(subprocess.run([openlink, "trace", "stages", "--json", *three_logs], check=True,
                                       capture_output=True, text=True).stdout)
    by_name = {one["name"]: one for one in stages["durations"]}
    assert {"ground out", "network", "bridge in", "UART write", "bridge back", "ground in", "total"} <= set(by_name)
    few = {name: one["samples"] for name, one in by_name.items() if one["samples"] < 195}
    assert not few, few
