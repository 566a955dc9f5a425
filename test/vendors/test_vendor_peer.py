"""The prober on the middleware of ROS against a relay of another vendor."""
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "nodes"))
from conftest import Program, domain, node_program  # noqa: E402,F401

PEER = Path(os.environ["OPENLINK_VENDOR_PEER"])


@pytest.mark.parametrize("profile, flags", [("default", []), ("sensor_data", ["--best-effort"])])
def test_a_relay_on_rustdds_echoes_every_small_probe(node_program, tmp_path, domain, profile, flags):  # noqa: F811
    relay = Program(tmp_path / "peer.log", PEER, "--vendor", "rustdds", "--domain", domain, *flags)
    try:
        relay.wait_for("relay is up")
        output = tmp_path / "results.json"
        prober = node_program("rtt", domain_id=domain, sizes="[0, 64, 1024]", count=50, warmup=5, rate_hz=50,
                              verify=True, output=output, qos__rtt__profile=profile)
        assert prober.wait() == 0, prober.log + relay.log
        found = json.loads(output.read_text(encoding="utf-8"))["rows"]
        assert [row["bytes"] for row in found] == [0, 64, 1024]
        assert all(row["sent"] == row["received"] == 50 and row["damaged"] == 0 for row in found), found
        assert relay.stop() == 0 and "echoed" in relay.log
    finally:
        relay.stop()
