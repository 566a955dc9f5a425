"""The sections of an experiment: paths against each other, jumps and their causes, and the recommender."""
from __future__ import annotations

import json
import re
import subprocess

import conftest


def run(path: str, size: int, median_us: float, transport: str, restart: int, overflows: int = 0, lost: int = 0) -> dict:
    """A run of an experiment's cell."""
    row = conftest.row("dds", path, size, median_us, 200, None, lost=lost, domains=(5, 10), seed=restart)
    row["settings"] = {"transport": transport, "cell": f"{path}_{size}_{transport}", "restart": restart}
    row["causes"] = {"udp_receive_overflows": overflows, "steal_percent": 2.5, "busy_percent": 40.0, "mtu": {"lo": 65536}}
    return row


def experiment() -> list[dict]:
    """Two paths of three runs, and a size that overflows with small buffers only."""
    rows = [run(path, 64, us, "udp", restart) for restart in range(3) for path, us in (("same-domain", 100), ("cross-domain", 200))]
    rows += [run("same-domain", 300_000, 9000, "udp", restart, overflows=500) for restart in range(3)]
    rows += [run("same-domain", size, us, "udp 4 MiB buffers", restart) for restart in range(3) for size, us in ((64, 100), (300_000, 500))]
    return rows


def test_paths_are_compared_and_jumps_explained(browser, report, results):
    dom = browser.dom(report(results(experiment())))
    comparison = re.search(r'<section id="paths">.*?</section>', dom, re.S)[0]
    ratio, = re.findall(r'data-head="ratio"><b>([\d.]+)</b>', comparison)
    assert 1.7 < float(ratio) < 2.3 and "3 / 3" in comparison and "600 / 600" in comparison
    jumps = re.search(r'<section id="knees">.*?</section>', dom, re.S)[0]
    assert "knee at 300 KB" in jumps and "1500 datagrams dropped" in jumps
    assert "shown by intervention: with udp 4 MiB buffers" in jumps
    assert "500 datagrams dropped at full receive buffers" in dom, "a note beside the row"
    assert "2.5 % stolen" in dom


def test_runs_of_a_cell_are_drawn_as_one_line(browser, report, results):
    dom = browser.dom(report(results(experiment())))
    names = re.findall(r'data-color="[^"]*"><i [^>]*></i> ?([^<]*)<', dom)
    assert len(names) == 5, names
    assert any("udp 4 MiB buffers" in name for name in names)


def test_the_page_ranks_as_the_command_does(browser, report, results, openlink, tmp_path):
    file = results(experiment())
    page = report(file)
    for size, deadline_ms, loss in [(64, 1, 0.1), (1000, 1, 0.1), (1000, 3, 0.001), (5_000_000, 1, 0.1)]:
        command = [openlink, "recommend", file, "--bytes", str(size), "--deadline-ms", str(deadline_ms), "--loss", str(loss), "--json"]
        ranked = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        script = f"""<script>
          const set = (name, value) => {{
            const input = document.getElementById("need-" + name);
            input.value = value;
            input.dispatchEvent(new Event("input"));
          }};
          set("bytes", "{size}"); set("deadline", "{deadline_ms}"); set("loss", "{loss}");
          document.title = JSON.stringify([...document.querySelectorAll("#ranking li")].map((li) => [li.dataset.fit, li.textContent]));
        </script></body>"""
        probe = tmp_path / "probe.html"
        probe.write_text(page.read_text().replace("</body>", script))
        title = re.search(r"<title>(.*?)</title>", browser.dom(probe), re.S).group(1).replace("&amp;", "&")
        shown = json.loads(title)
        if not ranked:
            assert "Nothing was measured" in shown[0][1]
            continue
        fits = ["meets", "unresolved", "misses"]
        assert [fits[int(fit)] for fit, _ in shown] == [one["fit"] for one in ranked]
        for (_, text), one in zip(shown, ranked):
            assert text.startswith(one["config"] + ":"), (text, one)
            assert text.endswith("rows " + ", ".join(str(row + 1) for row in one["rows"]))
            assert f'{one["missed"] * 100:.3f} % missed of {one["sent"]}' in text
