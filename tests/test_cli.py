"""The command line: what it prints, and with which code it ends."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli import main

# Two GPUs, four hourly steps. The app peaks at 1, so FIFO reserves GPU 1 all day: 4 GPU-steps, 2 of
# them useful. `first` takes GPU 0 in steps 0-1, `second` in steps 2-3. Useful: 2 + 2 + 2 of 8.
TINY = """\
kind: allocation
name: tiny
cluster: {gpus: 2}
horizon: {steps: 4, step_hours: 1}
objective: {shortfall_penalty: 8, half_life_hours: null}
realtime:
  - {name: chat, priority: 5, demand: [0, 1, 1, 0]}
batch:
  - {name: first, kind: training, gpus: 1, hours: 2, priority: 3}
  - {name: "=1+1", kind: quantization, gpus: 1, hours: 2, priority: 1}
  - {name: giant, kind: training, gpus: 4, hours: 1, priority: 1}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=no_constant)


def test_json_has_the_figures_of_the_contract(run: Run, tiny: Path) -> None:
    status, out, err = run("compare", tiny, "--policies", "fifo", "--json")
    assert (status, err) == (0, "")
    whole = strict_json(out)
    assert list(whole) == ["scenario", "fingerprint", "policies"]
    assert whole["scenario"] == "tiny"
    assert len(whole["fingerprint"]) == 64
    figures = whole["policies"]["fifo"]
    assert figures["utilization"] == 6 / 8
    assert figures["held"] == 1.0
    assert figures["value"] == figures["value_undecayed"] == 2 * 3 + 2 * 1
    assert (figures["penalty"], figures["objective"], figures["coverage"]) == (0, 8, 1)
    assert (figures["shortfall_gpu_hours"], figures["swaps"]) == (0, 0)
    assert (figures["jobs_placed"], figures["jobs_finished"], figures["jobs_unplaced"]) == (2, 2, 1)
    assert (figures["wait_p50_hours"], figures["wait_p90_hours"]) == (2, 2)  # of 0, 2: index floor(q x 2) = 1
    assert figures["violations"] == 0
    assert figures["seconds"] >= 0


def test_json_repeats_but_for_the_seconds(run: Run) -> None:
    first, second = (strict_json(run("compare", "mixed-day", "--json")[1]) for _ in range(2))
    for whole in (first, second):
        assert list(whole["policies"]) == ["fifo", "aware"]
        for figures in whole["policies"].values():
            del figures["seconds"]
    assert first == second


def test_table_has_aligned_columns_and_units(run: Run, tiny: Path) -> None:
    status, out, err = run("compare", tiny, "--policies", "fifo,aware")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "tiny"
    head = next(line for line in lines if line.startswith("figure"))
    assert head.split() == ["figure", "fifo", "aware", "unit"]
    row = next(line for line in lines if line.startswith("utilization"))
    assert row.split()[:3] == ["utilization", "75.0%", "75.0%"]
    for column in ("fifo", "aware"):
        end = head.index(column) + len(column)
        assert row[end - 1] == "%"
        assert row[end : end + 2] == "  "
    assert "set aside: giant: " in out
    assert "seconds" not in out


def test_policies_come_in_the_order_asked_for_and_once(run: Run, tiny: Path) -> None:
    out = run("compare", tiny, "--policies", "aware, fifo,aware", "--json")[1]
    assert list(strict_json(out)["policies"]) == ["aware", "fifo"]


def test_plans_are_a_row_per_gpu_and_stretch(run: Run, tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "plans"
    assert run("compare", tiny, "--policies", "fifo,aware", "--plans", folder)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["aware.csv", "fifo.csv"]
    with (folder / "fifo.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["job", "kind", "gpu", "start_step", "end_step"]
    # A spreadsheet shows '=1+1 as the text =1+1 and does not compute it.
    assert sorted(rows) == [
        ["'=1+1", "quantization", "0", "2", "4"],
        ["chat", "real-time", "1", "0", "4"],
        ["first", "training", "0", "0", "2"],
    ]


def test_plans_that_cannot_be_written_are_the_callers_fault(run: Run, tiny: Path) -> None:
    status, out, err = run("compare", tiny, "--plans", tiny)
    assert (status, out) == (2, "")
    assert f"cannot write plans to {tiny}" in err


def test_scenarios_lists_every_file_on_a_line_of_its_own(run: Run, checkout: Path) -> None:
    status, out, _ = run("scenarios")
    assert status == 0
    listed = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}
    shipped = {path.stem: path.parent.name for path in (checkout / "scenarios").glob("*/*.yaml")}
    assert {"mixed-day", "training-rush", "two-apps", "big-day", "three-programmes"} <= set(shipped)
    assert listed == shipped


@pytest.mark.parametrize("kind", ["allocation", "fairshare", "packing"])
def test_schema_accepts_the_shipped_scenarios_and_refuses_others(run: Run, kind: str) -> None:
    import jsonschema

    from gpuplan.loading import shipped

    status, out, _ = run("schema", kind)
    assert status == 0
    schema = strict_json(out)
    jsonschema.validators.validator_for(schema).check_schema(schema)
    from ruamel.yaml import YAML

    for scenario in (one for one in shipped() if one.kind == kind):
        plain = json.loads(json.dumps(YAML(typ="safe", pure=True).load(scenario.path), default=str))
        jsonschema.validate(plain, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"kind": kind, "name": "x", "cluster": {"gpuss": 1}}, schema)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policies", "awear"], "did you mean aware? (got 'awear')"),
        (["--policies", "zzz"], "must be one of fifo, "),
        (["--policies", "fifo,\x1b[31m"], r"(got '\x1b[31m')"),
        (["--policies", " , "], "must name at least one policy"),
        (["--iterations", "9"], "--iterations is for the policy 'search': name it in --policies"),
        (["--iterations", "0"], "--iterations is for the policy 'search'"),
        (["--budget-ms", "2"], "--budget-ms is for the policy 'search'"),
        (["--seed", "0"], "--seed is for the policy 'search' or 'exact'"),
        (
            ["--time-limit", "9"],
            "--time-limit is for the policy 'exact': name it in --policies (or give --certify)",
        ),
        (["--iterations", "-1"], "must be a whole number of at least 0 (got -1)"),
        (["--time-limit", "nan"], "must be a number of at least 0 (got nan)"),
        (["--iterations", "many"], "must be a whole number of at least 0 (got many)"),
        (["--polices", "fifo"], "unrecognized arguments: --polices fifo"),
    ],
)
def test_options_that_cannot_apply_exit_with_two(run: Run, words: list[str], message: str) -> None:
    status, out, err = run("compare", "mixed-day", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_search_repeats_exactly_for_a_seed_and_a_number_of_moves(run: Run) -> None:
    words = (
        "compare",
        "two-apps",
        "--policies",
        "aware,search",
        "--iterations",
        "400",
        "--seed",
        "3",
        "--json",
    )
    found = [json.loads(run(*words)[1]) for _ in range(2)]
    for answer in found:
        del answer["policies"]["aware"]["seconds"], answer["policies"]["search"]["seconds"]
    assert found[0] == found[1]
    policies = found[0]["policies"]
    assert policies["search"]["objective"] >= policies["aware"]["objective"]


def test_certify_proves_the_bound_of_every_plan(run: Run) -> None:
    status, out, err = run("compare", "mixed-day", "--certify", "--time-limit", "60", "--json")
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert answer["proofs"]["aware"]["status"] == "optimal"
    assert {figures["bound"] for figures in answer["policies"].values()} == {473.351264}
    status, out, _ = run("compare", "mixed-day", "--policies", "exact", "--time-limit", "60")
    assert status == 0
    assert out.rstrip().endswith("Proven optimal: no legal plan is worth more than 473.35.")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.yaml", b"", "empty.yaml"),
        ("binary.yaml", bytes(range(256)), "binary.yaml"),
        ("list.yaml", b"- 1\n", "list.yaml"),
        ("keys.yaml", TINY.replace("gpus: 2}", "gpus: -1, gpus_per_nod: 8}").encode(), "gpus_per_node?"),
        ("twice.yaml", TINY.encode() + b"name: again\n", "name"),
        ("esc.yaml", TINY.replace("gpus: 2}", 'gpus: "\\e[2J"}').encode(), r"\x1b[2J"),
    ],
)
def test_a_bad_file_is_a_sentence_and_a_two(
    run: Run, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    status, out, err = run("compare", tmp_path / name)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert "\x1b" not in err


def test_an_unknown_scenario_gets_a_suggestion(run: Run) -> None:
    status, _, err = run("compare", "mixed-dya")
    assert status == 2
    assert "mixed-day" in err


def test_a_missing_file_and_a_folder_are_the_inputs_fault(run: Run, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.yaml", tmp_path):
        status, _, err = run("compare", path)
        assert status == 2
        assert path.name in err


def test_our_own_fault_is_a_one_and_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("a wire fell off")

    monkeypatch.setattr("gpuplan.loading.shipped", broken)
    monkeypatch.delenv("GPUPLAN_TRACEBACK", raising=False)
    status, out, err = run("scenarios")
    assert (status, out) == (1, "")
    assert "internal error" in err
    assert "RuntimeError: a wire fell off" in err
    monkeypatch.setenv("GPUPLAN_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="a wire fell off"):
        main(["scenarios"])


def test_an_illegal_plan_is_our_fault(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.allocation.plan.Plan.violations", 2)
    status, out, err = run("compare", tiny, "--policies", "fifo", "--json")
    assert status == 1
    assert strict_json(out)["policies"]["fifo"]["violations"] == 2
    assert "the plan of fifo breaks 2 rules" in err


@pytest.mark.parametrize("words", [[], ["fly"], ["schema", "cars"], ["compare"]])
def test_wrong_usage_exits_with_two(run: Run, words: list[str]) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("usage: gpuplan")


def test_help_and_version_are_fine(run: Run) -> None:
    assert run("--version")[:2] == (0, "gpuplan 0.1.0\n")
    for words in (["--help"], ["compare", "--help"], ["lab", "--help"]):
        status, out, _ = run(*words)
        assert status == 0
        assert out.startswith("usage: gpuplan")


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which $GPUPLAN is the command."""
    environment = {**os.environ, "GPUPLAN": f"{sys.executable} -m gpuplan"}
    return subprocess.run(
        ["bash", "-c", command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_a_reader_that_stops_early_hears_nothing(tmp_path: Path) -> None:
    done = shell("$GPUPLAN schema allocation | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = shell("$GPUPLAN compare --help | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = shell("$GPUPLAN schema allocation > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "gpuplan: cannot write the output: No space left on device\n"


def test_a_terminal_without_utf8_shows_escapes(tmp_path: Path) -> None:
    (tmp_path / "smile.yaml").write_text(TINY.replace("name: tiny", "name: 😀 día"), encoding="utf-8")
    done = shell("PYTHONIOENCODING=ascii $GPUPLAN compare smile.yaml --policies fifo", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\U0001f600 d\\xeda\n")


def test_help_starts_without_the_heavy_libraries() -> None:
    program = (
        "import sys; from gpuplan.cli import main; main(['--help']);"
        "print(*(m for m in ('numpy', 'numba', 'pandas', 'altair', 'pydantic') if m in sys.modules), 'end')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["end"]
