"""A person's own file on a real page: an upload, what is wrong with it beside it, and the picture meanwhile."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

import gpuplan as gp
from browser.screen import Screen

#: Two good rows, and four that cannot be read.
BAD = """\
id,submit_s,gpus,run_s
a,0,4,3600
b,60,eight,600
c,120,2,-5
d,180,2,
e,240,,60
<img src=x onerror=alert(1)>,300,2,600
"""

#: On 4 GPUs: two at once, then one that has to wait; submitted in the first hour.
LOG = """\
; MaxProcs: 4
1 0 0 7200 2 -1 -1 2 7200 -1 1 1 1 -1 1 -1 -1 -1
2 60 0 3600 2 -1 -1 2 3600 -1 1 2 1 -1 1 -1 -1 -1
3 120 3600 3600 4 -1 -1 4 3600 -1 1 2 2 -1 1 -1 -1 -1
"""

INJECTED = "img[src=x], .gp-explorer script, [onerror]"


def opened(screen: Screen) -> None:
    """Unfold the controls for files."""
    screen.page.get_by_text("Your own file").click()


def is_grey(screen: Screen) -> bool:
    host = screen.page.locator(".gp-chart-host")
    return "grayscale" in str(host.evaluate("(host) => getComputedStyle(host).filter"))


def choose(screen: Screen, path: Path) -> None:
    with screen.page.expect_file_chooser() as chooser:
        screen.page.locator("button.gp-file-upload").click()
    chooser.value.set_files(path)


def test_a_bad_file_is_said_beside_the_control_and_goes_on_only_when_told(
    explore: Callable[[str], Screen], tmp_path: Path
) -> None:
    screen = explore('"two-apps"')
    before = gp.load("two-apps")
    screen.await_scenario(before)
    opened(screen)
    bad = tmp_path / "input.csv"
    bad.write_text(BAD, encoding="utf-8")
    choose(screen, bad)
    told = screen.page.locator(".gp-message-file [role=alert]")
    expect(told).to_have_text("input.csv: 4 mistakes in 4 lines.")
    rows = screen.page.locator(".gp-file-report tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("'eight'")
    expect(rows.nth(1)).to_contain_text("'-5'")
    expect(screen.page.locator(".gp-old-note")).to_have_text("Old picture: not from the new file")
    assert is_grey(screen)
    assert screen.shows(gp.plan(before, "fifo"), gp.plan(before, "aware"))  # still the old one
    go_on = screen.page.locator("button.gp-file-go-on")
    expect(go_on).to_have_text("Go on without these 4 rows")
    go_on.click()
    expect(told).to_have_count(0)
    made = gp.import_file(bad, strict=False, kind="allocation")
    assert len(made.scenario.batch) == 2
    screen.await_scenario(made.scenario)
    assert not is_grey(screen)
    expect(go_on).to_be_hidden()
    expect(screen.page.locator(".gp-file-report")).to_contain_text("cannot be read (lines 3, 4, 5, 6)")
    assert screen.page.locator(INJECTED).count() == 0


def test_a_good_file_is_drawn_with_its_account(explore: Callable[[str], Screen], tmp_path: Path) -> None:
    screen = explore('"two-apps"')
    opened(screen)
    good = tmp_path / "log.swf"
    good.write_text(LOG, encoding="utf-8")
    choose(screen, good)
    made = gp.import_file(good, kind="allocation")
    assert [job.gpus for job in made.scenario.batch] == [2, 2, 4]
    screen.await_scenario(made.scenario)
    report = screen.page.locator(".gp-file-report")
    expect(report).to_contain_text("4 GPUs, as the header of the file tells")
    expect(report).to_contain_text("Account of log.swf")
    expect(screen.page.locator(".gp-message-file [role=alert]")).to_have_count(0)
    assert not is_grey(screen)


def test_a_path_that_is_none_is_a_sentence_and_can_be_left(explore: Callable[[str], Screen]) -> None:
    screen = explore('"two-apps"')
    opened(screen)
    path = screen.page.locator(".gp-file-path input")
    path.fill("absent.csv")
    path.press("Enter")
    told = screen.page.locator(".gp-message-file [role=alert]")
    expect(told).to_contain_text("absent.csv: there is no such file")
    assert is_grey(screen)
    screen.page.locator("button.gp-file-dismiss").click()
    expect(told).to_have_count(0)
    expect(screen.page.locator(".gp-old-note")).to_have_text("")
    assert not is_grey(screen)
