"""`openlink bench dds` and `openlink recommend` as programs, with the real nodes."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import OPENLINK, wait_until

PLAN = """name: small
count: {count}
warmup: 5
paths: {paths}
sizes: {sizes}
transports: {transports}
cell_limit_s: 30
"""


@pytest.fixture
def plan(tmp_path):
    """Writes a plan and returns its path."""
    def write(count=30, paths="[same-domain]", sizes="[64]", transports="[{kind: udp}]", more=""):
        path = tmp_path / "plan.yaml"
        path.write_text(PLAN.format(count=count, paths=paths, sizes=sizes, transports=transports) + more, encoding="utf-8")
        return path
    return write


@pytest.fixture
def bench(openlink, tmp_path, domain, other_domain):
    """Starts a bench in domains of its own."""
    def start(path, *flags):
        return openlink("bench", "dds", path, "--out", tmp_path / "out", "--domains", f"{domain},{other_domain}", *flags)
    return start


def rows(folder):
    """Rows of a results file, none of them with NaN."""
    results = json.loads((folder / "out/results.json").read_text(encoding="utf-8"))
    return results["rows"]


def test_every_path_gives_a_row_with_causes_beside_its_figures(bench, plan, tmp_path, domain, other_domain):
    program = bench(plan(paths="[same-domain, cross-domain, two-contexts]", sizes="[70000]", more="verify: true\n"))
    assert program.wait(120) == 0, program.log
    found = {row["path"]: row for row in rows(tmp_path)}
    assert set(found) == {"same-domain", "cross-domain", "two-contexts"}
    for path, row in found.items():
        assert row["received"] == 30 and row["damaged"] == 0, path
        assert row["settings"]["transport"] == "udp" and row["settings"]["transport_seen"] == "udp"
        assert row["settings"]["qos_negotiated"] == "probe: reliable, volatile; echo: reliable, volatile"
        causes = row["causes"]
        assert causes["lost_on_the_way_out"] == causes["lost_on_the_way_back"] == 0
        roles = {"prober", "relay"} | ({"bridge"} if path == "cross-domain" else set())
        assert set(causes["processes"]) == roles
        assert all(usage["rss_mib"] > 1 for usage in causes["processes"].values())
        assert causes["mtu"]["lo"] > 1000
        # The clocks are shared, so that both ways are known and together give the round trip less the relay's time.
        assert row["stamps"]["out_us"]["p50"] > 0 and row["stamps"]["back_us"]["p50"] > 0
        assert row["stamps"]["wake_us"]["p50"] is not None
    assert found["same-domain"]["domains"] == [domain, domain]
    assert found["cross-domain"]["domains"] == found["two-contexts"]["domains"] == [domain, other_domain]
    assert "cross-domain over same-domain, 70 KB" in program.log
    assert "Paths against one domain" in (tmp_path / "out/report.html").read_text(encoding="utf-8")


def test_every_kind_of_payload_goes_there_and_back(bench, plan, tmp_path):
    program = bench(plan(sizes="[1000]", more="payloads: [binary, image, string, imu]\nverify: true\n"))
    assert program.wait(120) == 0, program.log
    found = {row["payload"]: (row["bytes"], row["received"], row["damaged"]) for row in rows(tmp_path)}
    assert found == {"binary": (1000, 30, 0), "image": (1000, 30, 0), "string": (1000, 30, 0), "imu": (312, 30, 0)}


def test_larger_socket_buffers_take_effect_and_are_read_back(bench, plan, tmp_path):
    program = bench(plan(transports="[{kind: udp}, {kind: udp, socket_buffer: 150000}]"))
    assert program.wait(120) == 0, program.log
    buffers = {row["settings"]["transport"]: row["causes"]["processes"]["prober"]["receive_buffers"] for row in rows(tmp_path)}
    # The kernel counts twice what a program asks for; a sandbox may forbid to look.
    if any(buffers.values()):
        assert 300000 in buffers["udp 150 KB buffers"] and 300000 not in buffers["udp"]


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(bench, plan, tmp_path):
    path = plan(count=20, sizes="[0, 1, 2, 3, 4, 5]")
    first = bench(path)
    journal = tmp_path / "out/journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count("measured") >= 2, 60, "two measured cells")
    assert first.stop(signal.SIGINT, 30) == 1 and "goes on" in first.log
    kept = [row["bytes"] for row in rows(tmp_path)]
    assert 2 <= len(kept) < 6
    second = bench(path)
    assert second.wait(120) == 0, second.log
    assert [row["bytes"] for row in rows(tmp_path)][:len(kept)] == kept, "what was measured is kept, not measured again"
    assert sorted(row["bytes"] for row in rows(tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_what_is_not_available_is_a_cell_that_says_so(bench, plan, tmp_path):
    more = "rmw: [[default, default], [rmw_nobody_cpp, rmw_nobody_cpp]]\n"
    program = bench(plan(more=more))
    assert program.wait(120) == 0, program.log
    assert len(rows(tmp_path)) == 1
    assert "not available: librmw_nobody_cpp.so" in program.log


def test_a_size_that_hardly_ever_arrives_is_reported_and_the_sweep_goes_on(bench, plan, tmp_path):
    """A burst far longer than the receive buffer is lost; the other sizes are measured, each with its loss and limits."""
    sizes = [0, 1, 1400, 65535, 65536, 65537, 262144, 1048576, 4194304]
    more = "qos: [{profile: sensor_data}]\ntimeout_s: 0.1\nseed: 3\n"
    # The longest message is over 500 datagrams here, of which the buffer holds two at most.
    small = "[{kind: udp, socket_buffer: 8000, max_message: 8000}]"
    program = bench(plan(count=10, sizes=str(sizes), transports=small, more=more))
    assert program.wait(180) == 0, program.log
    found = {row["bytes"]: row for row in rows(tmp_path)}
    assert sorted(found) == sizes
    for size, row in found.items():
        assert row["received"] + row["lost"] + row["late"] == row["sent"] > 0, size
        causes = row["causes"]
        assert causes["lost_on_the_way_out"] + causes["lost_on_the_way_back"] >= row["lost"], size
        assert causes["mtu"]["lo"] > 1000 and "receive_buffers" in causes["processes"]["prober"], size
    assert all(found[size]["received"] == 10 for size in (0, 1, 1400))
    # One may come through where the reader happens to keep pace.
    largest = found[4194304]
    assert largest["received"] < 5 and largest["causes"]["lost_on_the_way_out"] > 0


@pytest.mark.parametrize("slip, parts", [
    ("sices: [1]", ["plan.yaml", "sices"]),
    ("restarts: 0", ["plan.yaml", "restarts", "at least 1"]),
    ("cures: [{kind: udp, socket_buffer: 100}]", ["plan.yaml", "socket_buffer", "100", "65500"]),
    ("payloads: [video]", ["plan.yaml", "video"]),
])
def test_a_plan_with_a_slip_starts_nothing(bench, plan, tmp_path, slip, parts):
    program = bench(plan(more=slip + "\n"))
    assert program.wait(20) == 1
    assert all(part in program.log for part in parts), program.log
    assert not (tmp_path / "out").exists()


def test_without_the_nodes_the_error_says_what_to_do(tmp_path):
    alone = tmp_path / "openlink"
    alone.write_bytes(OPENLINK.read_bytes())
    alone.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "AMENT_PREFIX_PATH"}
    done = subprocess.run([alone, "bench", "dds", "quick", "--out", tmp_path / "out"], env=environment, capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 1 and "make build" in done.stderr


def test_recommend_ranks_what_the_bench_measured(bench, plan, tmp_path):
    program = bench(plan(count=200))
    assert program.wait(60) == 0, program.log
    command = [OPENLINK, "recommend", tmp_path / "out/results.json", "--bytes", "32", "--deadline-ms", "900", "--loss", "0.05"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and re.search(r"dds same-domain, udp, .*meets it.*; rows 1", done.stdout), done.stdout
    nothing = subprocess.run([str(part) for part in [*command[:3], "--bytes", "9999"]], capture_output=True, text=True,
                             timeout=30, check=False)
    assert nothing.returncode == 1 and "nothing was measured" in nothing.stdout


def test_idle_nodes_need_next_to_no_processor(node_program, domain):
    """A relay without probes sleeps: well under a tenth of a processor over a second and a half."""
    relay = node_program("relay", domain_id=domain)
    relay.wait_for("relay is up")
    def ticks():
        fields = open(f"/proc/{relay.process.pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    before = ticks()
    time.sleep(1.5)
    assert ticks() - before < 15
