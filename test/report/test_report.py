"""The report as a browser shows it: no message on the console, every row there, readable at every size of data."""
from __future__ import annotations

import re
import subprocess

import conftest


def table_rows(dom: str) -> list[str]:
    body = re.search(r"<tbody>(.*?)</tbody>", dom, re.S)
    return re.findall(r"<tr.*?</tr>", body.group(1), re.S) if body else []


def test_every_row_is_shown_without_a_message_on_the_console(browser, report, results):
    rows = conftest.sweep()
    dom = browser.dom(report(results(rows)))
    shown = table_rows(dom)
    assert len(shown) == len(rows)
    for row, html in zip(rows, shown):
        assert f'{row["link"]} {row["path"]}' in html
        assert f'>{row["sent"]}<' in html
    assert dom.count("<svg") == 2 * (1 + 4), "boxes and four sizes, for desktop and phone"
    assert "Cortex-A76" in dom and "rmem_max" in dom
    assert dom.count('class="cursor"') == dom.count("<svg"), "the script reached every chart"


def test_pages_need_no_network(report, results):
    text = report(results(conftest.sweep())).read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://", text)
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_empty_and_one_sample_results(browser, report, results):
    one = conftest.row("dds", "same-domain", 64, 100, 1, 10.0, domains=(0, 0))
    none = conftest.row("dds", "cross-domain", 64, 100, 0, 10.0, lost=20, domains=(0, 1))
    for rows, expected in [([], "nothing was measured"), ([one], "1 answers"), ([none], "no answer in time"),
                           ([one, none], "no answer in time")]:
        dom = browser.dom(report(results(rows)))
        assert expected in dom
        for bad in ("NaN", "undefined", "Infinity"):
            assert bad not in re.sub(r"<script.*?</script>", "", dom, flags=re.S)


def test_files_of_two_machines_are_merged_and_both_shown(browser, report, results):
    first = results(conftest.sweep()[:2])
    second = results(conftest.sweep()[2:4], "other.json", {**conftest.HOST, "name": "laptop", "cpu": "Ryzen 7"})
    dom = browser.dom(report(first, second))
    assert len(table_rows(dom)) == 4
    assert "Machines" in dom and "Ryzen 7" in dom and "Cortex-A76" in dom


def test_a_phone_gets_the_narrow_charts(browser, report, results, tmp_path):
    page = report(results(conftest.sweep()))
    probe = page.read_text().replace("</body>", """<script>
      const shown = (name) => [...document.querySelectorAll(name)].filter((e) => e.offsetParent).length;
      document.title = [shown(".chart.wide"), shown(".chart.narrow"),
        document.documentElement.scrollWidth <= innerWidth].join(" ");
    </script></body>""")
    probe_page = tmp_path / "probe.html"
    probe_page.write_text(probe)
    title = lambda width: re.search(r"<title>(.*?)</title>", browser.dom(probe_page, width)).group(1)
    assert title(1280) == "5 0 true"
    assert title(500) == "0 5 true"


def test_sorting_filtering_and_pointing(browser, report, results, tmp_path):
    page = report(results(conftest.sweep()))
    script = """<script>
      const rows = () => [...document.querySelectorAll("#rows tbody tr")];
      const head = [...document.querySelectorAll("#rows th")].findIndex((th) => th.textContent.startsWith("p50"));
      document.querySelectorAll("#rows th button")[head].click();
      const p50 = rows().map((row) => Number(row.cells[head].dataset.sort));
      const sorted = p50.every((value, i) => !i || p50[i - 1] <= value);
      const filter = document.getElementById("filter");
      filter.value = "cross-domain 33 kb";
      filter.dispatchEvent(new Event("input"));
      const left = rows().filter((row) => !row.hidden).length;
      const svg = document.querySelectorAll(".chart.wide svg")[1];
      const box = svg.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove",
        { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
      const tip = document.getElementById("tip");
      document.title = [sorted, left, !tip.hidden, tip.textContent.includes("took at most")].join(" ");
    </script></body>"""
    probe = tmp_path / "probe.html"
    probe.write_text(page.read_text().replace("</body>", script))
    assert re.search(r"<title>(.*?)</title>", browser.dom(probe)).group(1) == "true 1 true true"


def test_a_file_that_is_none_is_named(openlink, tmp_path):
    bad = tmp_path / "bad.json"
    for text, expected in [('{"schema": 7}', "field schema is 7"), ("[]", "no results file"), ("", "no results file")]:
        bad.write_text(text)
        done = subprocess.run([openlink, "report", bad, "-o", tmp_path / "r.html"], capture_output=True, text=True)
        assert done.returncode == 1
        assert "bad.json" in done.stderr and expected in done.stderr
        assert not (tmp_path / "r.html").exists()
