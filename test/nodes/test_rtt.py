"""The prober and the relay as processes of their own, and beside rclpy relays that misbehave."""
import json
import signal
import time

import pytest
from conftest import wait_until
from crazyflie_openlink.msg import RttProbe
from rclpy.qos import QoSProfile, ReliabilityPolicy


def rows(path):
    """The rows of a results file, without any NaN."""
    def refuse(name):
        raise AssertionError(f"{name} in {path}")
    results = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert results["schema"] == 1 and results["host"]
    return results["rows"]


def test_same_domain_rows_have_what_the_schema_says(node_program, tmp_path, domain):
    output = tmp_path / "results.json"
    node_program("relay", domain_id=domain)
    prober = node_program("rtt", domain_id=domain, sizes="[0, 64, 70000]", count=50, warmup=5, output=output)
    assert prober.wait() == 0, prober.log
    found = rows(output)
    assert [row["bytes"] for row in found] == [0, 64, 70000]
    for row in found:
        assert row["link"] == "dds" and row["path"] == "same-domain" and row["domains"] == [domain, domain]
        assert row["sent"] == row["received"] == 50 and row["lost"] == row["late"] == row["foreign"] == 0
        assert row["warmup"] == 5 and not row["partial"]
        assert row["rtt_us"]["min"] <= row["rtt_us"]["p50"] <= row["rtt_us"]["max"]
        assert 0 < row["latency_us"]["p50"] < row["rtt_us"]["p50"]


def test_cross_domain_through_the_bridge(node_program, tmp_path, domain, other_domain):
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"from_domain: {domain}\nto_domain: {other_domain}\ntopics:\n"
                     "  rtt/probe: {type: crazyflie_openlink/msg/RttProbe}\n"
                     "  rtt/echo: {type: crazyflie_openlink/msg/RttProbe, reversed: true}\n", encoding="utf-8")
    output = tmp_path / "results.json"
    node_program("relay", domain_id=other_domain)
    node_program("domain_bridge", config=rules)
    prober = node_program("rtt", domain_id=domain, relay_domain_id=other_domain, sizes="[64]", count=50, output=output)
    assert prober.wait() == 0, prober.log
    row, = rows(output)
    assert row["path"] == "cross-domain" and row["domains"] == [domain, other_domain] and row["received"] == 50


def test_prober_started_5_s_before_the_relay_waits_and_measures(node_program, tmp_path, domain):
    output = tmp_path / "results.json"
    prober = node_program("rtt", domain_id=domain, sizes="[64]", count=20, wait_s=40, output=output)
    time.sleep(5)
    assert prober.process.poll() is None
    node_program("relay", domain_id=domain)
    assert prober.wait() == 0, prober.log
    assert rows(output)[0]["received"] == 20


def test_relay_that_never_comes_is_a_clear_error(node_program, tmp_path, domain):
    output = tmp_path / "results.json"
    prober = node_program("rtt", domain_id=domain, wait_s=1.5, output=output)
    assert prober.wait() == 1 and "no relay within" in prober.log and not output.exists()


def test_every_tenth_reply_dropped(node_program, peer, tmp_path, domain):
    best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    relay, output = peer(domain, "lossy_relay"), tmp_path / "results.json"
    publisher = relay.node.create_publisher(RttProbe, "rtt/echo", best_effort)

    def echo(probe):
        if probe.sequence >= 1 << 63 or probe.sequence % 10 != 9:
            publisher.publish(probe)
    relay.node.create_subscription(RttProbe, "rtt/probe", echo, best_effort)
    prober = node_program("rtt", domain_id=domain, sizes="[64]", count=100, warmup=0, rate_hz=100, timeout_s=0.5,
                          output=output, qos__rtt__profile="sensor_data")
    assert prober.wait(40) == 0, prober.log
    row, = rows(output)
    assert (row["sent"], row["received"], row["lost"] + row["late"]) == (100, 90, 10)


def test_a_relay_that_holds_50_ms_reports_it_and_the_net_figure_stays(node_program, tmp_path, domain):
    output = tmp_path / "results.json"
    node_program("relay", domain_id=domain, hold_ms=50)
    prober = node_program("rtt", domain_id=domain, sizes="[64]", count=20, warmup=3, output=output)
    assert prober.wait() == 0, prober.log
    row, = rows(output)
    assert row["processing_us"]["p50"] >= 50_000
    assert row["rtt_us"]["p50"] >= 50_000
    assert row["latency_us"]["p50"] < 25_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_and_writes_what_was_measured(node_program, tmp_path, domain, number):
    output = tmp_path / "results.json"
    node_program("relay", domain_id=domain)
    prober = node_program("rtt", domain_id=domain, sizes="[64, 128]", count=100000, warmup=0, rate_hz=100, output=output)
    prober.wait_for("waiting for the relay")
    time.sleep(4)
    assert prober.stop(number) == 0, prober.log
    row, = rows(output)
    assert row["partial"] and row["received"] > 0


def test_two_probers_do_not_mix(node_program, tmp_path, domain):
    node_program("relay", domain_id=domain)
    outputs = [tmp_path / f"{index}.json" for index in range(2)]
    probers = [node_program("rtt", "-r", f"__node:=rtt{index}", domain_id=domain, sizes="[64]", count=100, warmup=0,
                            rate_hz=50, output=output) for index, output in enumerate(outputs)]
    assert [prober.wait() for prober in probers] == [0, 0]
    for output in outputs:
        row, = rows(output)
        assert row["received"] == 100 and row["foreign"] > 0


@pytest.mark.parametrize("executable", ["relay", "rtt", "bridge"])
@pytest.mark.parametrize("bad", ["9999", "233", "-1", "5.0", "five", "true"])
def test_illegal_domains_are_refused_naming_key_and_range(node_program, executable, bad):
    program = node_program(executable, domain_id=bad)
    assert program.wait(20) == 1
    assert "domain_id" in program.log and bad in program.log and "0 to 232" in program.log


@pytest.mark.parametrize("good", [0, 101, 232])
def test_the_ends_of_the_range_are_accepted(node_program, good):
    program = node_program("relay", domain_id=good)
    program.wait_for("relay is up")
    assert f"domain={good}" in program.log
    assert program.stop() == 0


def test_parameters_are_visible_as_read_only(node_program, peer, domain):
    from rcl_interfaces.srv import GetParameters, SetParameters
    from rclpy.parameter import Parameter
    node_program("relay", domain_id=domain)
    node = peer(domain).node
    reader = node.create_client(GetParameters, "/relay/get_parameters")
    writer = node.create_client(SetParameters, "/relay/set_parameters")
    wait_until(lambda: reader.service_is_ready() and writer.service_is_ready(), what="parameter services")
    got = reader.call_async(GetParameters.Request(names=["domain_id"]))
    wait_until(got.done, what="the answer")
    assert got.result().values[0].integer_value == domain
    change = Parameter("domain_id", value=5).to_parameter_msg()
    refused = writer.call_async(SetParameters.Request(parameters=[change]))
    wait_until(refused.done, what="the answer")
    assert not refused.result().results[0].successful


@pytest.mark.parametrize("executable", ["rtt", "relay"])
def test_a_prober_that_would_hear_itself_is_refused(node_program, domain, executable):
    program = node_program(executable, domain_id=domain, echo_topic="/rtt/probe")
    assert program.wait(20) == 1 and "echo_topic" in program.log


def test_stopped_before_the_relay_came_leaves_old_results_alone(node_program, tmp_path, domain):
    output = tmp_path / "results.json"
    output.write_text("mine", encoding="utf-8")
    prober = node_program("rtt", domain_id=domain, output=output)
    prober.wait_for("waiting for the relay")
    assert prober.stop() == 1 and output.read_text(encoding="utf-8") == "mine"


def test_a_relay_with_another_qos_is_named_as_the_cause(node_program, domain):
    node_program("relay", domain_id=domain).wait_for("relay is up")
    prober = node_program("rtt", domain_id=domain, wait_s=4, qos__rtt__profile="sensor_data")
    assert prober.wait(40) == 1 and "QoS does not fit" in prober.log


def test_a_tiny_rate_is_refused(node_program, domain):
    node_program("relay", domain_id=domain)
    prober = node_program("rtt", domain_id=domain, rate_hz="1.0e-300")
    assert prober.wait(40) == 1 and "0.001" in prober.log and "panicked" not in prober.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_right_after_the_start_is_not_lost(node_program, domain, number):
    for _ in range(5):
        relay = node_program("relay", domain_id=domain)
        relay.wait_for("relay is up")
        assert relay.stop(number) == 0 and "relay ends" in relay.log
