"""Zones, one-line logs, hostile names and records of the importers, each by the smallest input that goes wrong."""

import json
from pathlib import Path

import pytest

import gpuplan as gp
from gpuplan.traces.recorded import read_recorded
from gpuplan.traces.to_scenario_traffic import Service

HEAD = "id,team,state,submit_s,start_s,end_s,gpus,run_s"


def table(folder: Path, *rows: str, name: str = "two.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def two(folder: Path) -> Path:
    return table(
        folder,
        "a,red,completed,1772409600,1772409600,1772413200,2,3600",
        "b,red,completed,1772410200,1772413200,1772416800,4,3600",
    )


@pytest.mark.parametrize("zone", ["+01:00", "Z", "UTC", "Europe/Berlin"])
def test_every_zone_that_messages_name_works(tmp_path: Path, zone: str) -> None:
    path = tmp_path / "dated.csv"
    path.write_text("id,submit_time,gpus,run_s\na,2026-03-02 08:00:00,2,3600\nb,2026-03-03 09:00:00,4,60\n")
    made = gp.import_file(path, zone=zone, gpus=8)
    assert made.account.used == 2


def test_a_zone_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "dated.csv"
    path.write_text("id,submit_time,gpus,run_s\na,2026-03-02 08:00:00,2,3600\n")
    with pytest.raises(gp.InputError, match="must be a time zone"):
        gp.import_file(path, zone="../x", gpus=8)


def test_a_log_on_one_line_loses_the_bad_job_only(tmp_path: Path) -> None:
    def job(k: int, attempts: object) -> dict[str, object]:
        return {"jobid": f"j{k}", "vc": "v", "submitted_time": "2017-10-01 00:00:00", "attempts": attempts}

    good = [
        {
            "start_time": "2017-10-01 00:10:00",
            "end_time": "2017-10-01 01:10:00",
            "detail": [{"ip": "m", "gpus": ["g"]}],
        }
    ]
    late = [{**good[0], "end_time": "2017-09-30 00:00:00"}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([*(job(k, good) for k in range(5)), job(5, late), job(6, 3), job(7, 3)]))
    history = gp.read_history(path, strict=False)
    assert int(history.used.sum()) == 5
    assert (history.account.read, history.account.used) == (8, 5)


def test_names_of_what_was_stay_text_in_a_spreadsheet(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "\"=cmd|'/c calc'!A0\",@sum,=EVIL(),0,0,60,1,60",
        "b,-2+3,completed,0,60,120,1,60",
    )
    made = gp.import_file(path, gpus=8, budget="none")
    files = made.save(tmp_path / "out.yaml")
    was = next(file for file in files if file.name.endswith("as-it-was.csv"))
    for cell in was.read_text().replace("\n", ",").split(","):
        assert not cell.strip('"').startswith(("=", "@", "+")), cell
        assert not (cell.startswith("-") and not cell[1:].isdecimal()), cell
    assert len(read_recorded(was)) == 2


def test_no_name_of_traffic_is_written_where_names_are_hidden(tmp_path: Path) -> None:
    traffic = tmp_path / "secretname.csv"
    hours = [f"2026-03-02T{hour:02}:00,{10 + hour}" for hour in range(24)]
    traffic.write_text("\n".join(["time,requests_per_s", *hours]) + "\n")
    dated = tmp_path / "dated.csv"
    dated.write_text("id,submit_time,gpus,run_s\na,2026-03-02 08:00:00,2,3600\n")
    made = gp.import_file(
        dated,
        kind="allocation",
        day="2026-03-02",
        gpus=16,
        anonymise=True,
        traffic=traffic,
        service=Service(per_gpu=10),
    )
    assert "secretname" not in made.to_yaml()


def test_stretches_of_other_jobs_are_told(tmp_path: Path) -> None:
    made = gp.import_file(two(tmp_path), gpus=8, every=2)
    assert made.recorded is not None
    assert ("of a job that is not in the scenario", 1) in made.recorded.left_out


def test_a_start_without_gpus_is_no_record(tmp_path: Path) -> None:
    path = table(tmp_path, "a,red,completed,0,,,2,3600", "b,red,completed,0,60,120,0,60")
    made = gp.import_file(path, gpus=8)
    assert made.recorded is None
    assert [file.name for file in made.save(tmp_path / "out.yaml")] == ["out.yaml", "out.jobs.csv"]


def test_a_time_beyond_centuries_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(gp.InputError, match="must be a date"):
        gp.import_file(two(tmp_path), gpus=8, first="99999999d")


def test_attempts_on_other_gpus_keep_their_gpu_time(tmp_path: Path) -> None:
    """8 GPUs for 1,800 s, then 1 GPU for 2,400 s: 16,800 GPU-seconds on the one GPU of the last attempt."""
    rows = (
        ("2026-03-02T08:00:00", "2026-03-02T08:00:00", "2026-03-02T08:30:00", "00:30:00", "NODE_FAIL", 8),
        ("2026-03-02T08:31:00", "2026-03-02T08:40:00", "2026-03-02T09:20:00", "00:40:00", "COMPLETED", 1),
    )
    lines = ["JobID|JobIDRaw|Cluster|User|Account|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES"]
    lines += [
        f"7|7|c|u|a|{state}|{submit}|{start}|{end}|{lasted}|02:00:00|gres/gpu={gpus}|gres/gpu={gpus}"
        for submit, start, end, lasted, state, gpus in rows
    ]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(lines) + "\n")
    made = gp.import_file(path, "slurm", zone="UTC", gpus=8)
    assert made.scenario.jobs.gpu_seconds.tolist() == [8 * 1800 + 2400]
    assert gp.read_history(path, "slurm", zone="UTC").jobs().gpu_seconds.tolist() == [16_800]
