"""Answers that other programs give too: two workload logs, to every digit that is published for them."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gpuplan as gp
from gpuplan.fairshare.model import FairshareScenario

#: Arguments of the script (jobs, days, GPUs, load, seed) and the MD5 of what it writes.
LOGS = {
    "W10k": (("10000", "28", "512", "0.9", "1"), "dd0a5d4471bc7f3a3b8eb890237cb1d2"),
    "W100k": (("100000", "280", "512", "0.9", "1"), "cca95791edc46e5b2952507b278eb7b2"),
}

Logs = Callable[[str], FairshareScenario]


@pytest.fixture(scope="module")
def log(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Writes a log with the shared script, reads it."""
    read: dict[str, FairshareScenario] = {}

    def scenario(name: str) -> FairshareScenario:
        if name not in read:
            script = shared / "tools" / "mkswf.py"
            if not script.is_file():
                pytest.skip("shared data not present: no ../shared/tools/mkswf.py")
            words, md5 = LOGS[name]
            path = tmp_path_factory.mktemp("logs") / f"{name}.swf"
            subprocess.run([sys.executable, str(script), *words, str(path)], check=True, capture_output=True)
            assert hashlib.md5(path.read_bytes()).hexdigest() == md5
            read[name] = gp.load_swf(path, 512)
        return read[name]

    return scenario


@pytest.mark.parametrize(
    ("name", "policy", "mean_wait", "makespan", "p90", "p99"),
    [
        ("W10k", "fifo", "13238.66", 2_619_026, 41_245, 72_183),
        ("W10k", "easy", "4476.05", 2_595_885, 16_019, 45_344),
        ("W100k", "fifo", "9520.01", 24_249_415, 27_795, 52_881),
        ("W100k", "easy", "3289.43", 24_242_831, 10_523, 36_703),
    ],
)
def test_published_answers(
    log: Logs, name: str, policy: str, mean_wait: str, makespan: int, p90: int, p99: int
) -> None:
    run = gp.simulate(log(name), policy)
    found = run.figures
    assert f"{found['mean_wait_s']:.2f}" == mean_wait
    assert (found["makespan_s"], found["wait_p90_s"], found["wait_p99_s"]) == (makespan, p90, p99)
    assert found["jobs_finished"] == int(LOGS[name][0][0])
    assert found["lost_gpu_hours"] == 0


def test_without_a_reservation_the_mean_wait_is_another(log: Logs) -> None:
    found = gp.simulate(log("W10k"), "fifo-skip").figures["mean_wait_s"]
    assert f"{found:.0f}" == "1564"


@pytest.mark.parametrize("policy", ["fifo", "easy"])
def test_these_runs_break_no_rule(log: Logs, policy: str) -> None:
    assert gp.simulate(log("W10k"), policy).check() == []
