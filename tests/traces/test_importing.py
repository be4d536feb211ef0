"""From other people's files to scenarios: what is chosen, what is said, what is written, and what names become."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.traces.formats import format_of
from gpuplan.traces.history import history
from gpuplan.traces.import_file import write_jobs
from gpuplan.traces.names import LONGEST, safe_names
from gpuplan.traces.to_scenario_day import day_scenario
from gpuplan.traces.to_scenario_traffic import Service
from gpuplan.traces.wish import Wish, table_of

HOUR, DAY = 3600, 86_400

#: A machine of 16, from 2026-03-01 00:00 UTC on. Rows: number, submission, wait, run time, processors, ..., requested
#: time, ..., user, group, ..., queue. Job 1 runs over midnight; 2 and 3 want 3 and 12 processors; 4 came the next day.
LOG = """\
; UnixStartTime: 1772323200
; TimeZoneString: UTC
; MaxProcs: 16
1 79200 0 14400 8 -1 -1 8 28800 -1 1 1 1 -1 1 -1 -1 -1
2 3600 1800 7200 3 -1 -1 3 -1 -1 1 2 1 -1 2 -1 -1 -1
3 3660 0 3600 12 -1 -1 12 1800 -1 1 2 2 -1 1 -1 -1 -1
4 90000 0 3600 4 -1 -1 4 7200 -1 0 3 2 -1 2 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "cluster.swf"
    path.write_text(LOG, encoding="utf-8")
    return path


def mistakes(error):
    return [(mistake.path, mistake.rule) for mistake in error.value.mistakes]


# ------------------------------------------------------------------ fair share


def test_a_span_is_all_days_of_the_file(log):
    made = gp.import_file(log)
    jobs = made.scenario.jobs
    assert jobs.name.tolist() == ["2", "3", "1", "4"]
    assert jobs.submit_s.tolist() == [3600, 3660, 79_200, 90_000]
    assert jobs.team.tolist() == ["group-1/user-2", "group-2/user-2", "group-1/user-1", "group-2/user-3"]
    assert jobs.run_s.tolist() == [7200, 1800, 14_400, 3600]  # job 3 ran beyond its limit of 1,800 s
    assert jobs.minimum_s.tolist() == [3600, 1800, 3600, 3600]
    assert made.scenario.gpus == 16
    assert made.choices["Span"].startswith("from 2026-03-01 to 2026-03-03, its end not included (2 days)")
    assert "1 ran longer and end at it" in made.choices["Limits"]
    assert (made.account.read, made.account.used) == (4, 4)


def test_a_part_of_the_days_takes_the_rest_of_what_ran_into_it(log):
    made = gp.import_file(log, first="2026-03-02", last="2d", budget="none", gpus=8)
    jobs = made.scenario.jobs
    # job 1 started at 22:00 and runs for 4 h: 2 h are left at midnight, and 6 h of its limit
    assert jobs.name.tolist() == ["1", "4"]
    assert (jobs.submit_s.tolist(), jobs.run_s.tolist()) == ([0, 3600], [7200, 3600])
    assert jobs.limit_s.tolist() == [6 * HOUR, 2 * HOUR]
    assert made.scenario.gpus == 8
    alone = gp.import_file(log, first="2026-03-02", before=False).scenario.jobs
    assert alone.name.tolist() == ["4"]


def test_the_file_and_its_jobs_read_back_to_the_same_scenario(log, tmp_path):
    made = gp.import_file(log, priority="qos", ranks={"queue-2": 3})
    files = made.save(tmp_path / "out.yaml")
    assert [path.name for path in files] == ["out.yaml", "out.jobs.csv", "out.as-it-was.csv"]
    again = gp.load(tmp_path / "out.yaml")
    assert again.fingerprint == made.scenario.fingerprint
    assert again.jobs.priority.tolist() == [3, 1, 1, 3]
    text = files[0].read_text(encoding="utf-8")
    for topic, sentence in made.choices.items():
        assert f"# {topic}: {sentence}"[:60] in text
    first = {path.name: path.read_bytes() for path in files}
    gp.import_file(log, priority="qos", ranks={"queue-2": 3}).save(tmp_path / "out.yaml")
    assert first == {path.name: path.read_bytes() for path in files}


def test_lines_of_a_log_that_cannot_be_read_are_left_out_when_told(tmp_path):
    path = tmp_path / "cluster.swf"
    path.write_text(LOG + "5 1 2 many 4\n6\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        gp.import_file(path)
    assert [mistake.line for mistake in error.value.mistakes] == [8, 9]
    made = gp.import_file(path, strict=False)
    assert (made.account.read, made.account.used) == (6, 4)
    assert ("cannot be read (lines 8, 9)", 2) in made.account.excluded
    assert [mistake.line for mistake in made.mistakes] == [8, 9]


def test_weights_are_equal_or_by_use_or_as_asked(log):
    used = gp.import_file(log, budget="team", weights="used").scenario.budget
    # group 1: 8 x 4 h + 3 x 2 h = 38; group 2: 12 x 1 h + 4 x 1 h = 16
    assert [(node.name, node.weight) for node in used] == [("group-1", 38.0), ("group-2", 16.0)]
    asked = gp.import_file(log, budget="team", weights={"group-2": 5.0}).scenario.budget
    assert [(node.name, node.weight) for node in asked] == [("group-1", 1.0), ("group-2", 5.0)]
    with pytest.raises(InputError) as error:
        gp.import_file(log, budget="team", weights={"group2": 5.0})
    assert mistakes(error) == [
        ("weights", "must be at the top of the tree of budgets; did you mean group-2?")
    ]


def test_ranks_name_what_is_in_the_file(log):
    with pytest.raises(InputError) as error:
        gp.import_file(log, priority="qos")
    assert mistakes(error) == [("rank", "must say how important each qos is, as in queue-1=...,queue-2=...")]
    with pytest.raises(InputError) as error:
        gp.import_file(log, priority="qos", ranks={"queue1": 2})
    assert mistakes(error) == [("rank", "must be a qos of the file; did you mean queue-1?")]
    assert table_of("high,normal,low", "rank") == {"high": 4, "normal": 3, "low": 2}
    assert table_of("high=5, low=0.5", "rank") == {"high": 5, "low": 0.5}


def test_all_choices_that_cannot_be_are_told_at_once(log):
    with pytest.raises(InputError) as error:
        gp.import_file(log, kind="fairshare", gpus=0, budget="teams", sizes="left", ranks={"a": 1}, every=0)
    assert [path for path, _ in mistakes(error)] == ["budget", "sizes", "gpus", "every", "ranks"]
    with pytest.raises(InputError) as error:
        gp.import_file(log, budgets="team")
    assert mistakes(error) == [("budgets", "unknown choice; did you mean budget?")]
    with pytest.raises(InputError, match="must be nodes x gpus_per_node, 2 x 8"):
        gp.import_file(log, gpus=8, nodes=2, gpus_per_node=8)


# ------------------------------------------------------------------ allocation


def test_a_day_has_blocks_known_from_the_step_of_their_submission(log):
    made = gp.import_file(log, kind="allocation", day="2026-03-01")
    scenario = made.scenario
    rows = [(job.name, job.gpus, job.hours, job.earliest_hour, job.running_on) for job in scenario.batch]
    # 3 and 12 become 4 and 16; job 1 is known from 22:00, so that 2 of its 4 hours are of this day
    assert rows == [("2", 4, 2.0, 1.0, None), ("3", 16, 1.0, 1.0, None), ("1", 8, 2.0, 22.0, None)]
    # (4 - 3) x 2 h + (16 - 12) x 1 h
    assert "rounded up, the hours stay, 6.0 GPU-hours more" in made.choices["Sizes"]
    assert scenario.horizon.start == "2026-03-01"
    down = gp.import_file(log, kind="allocation", day="2026-03-01", sizes="down").scenario.batch
    # 3 x 2 h on 2 GPUs are 3 h, 12 x 1 h on 8 are 1.5 h
    assert [(job.gpus, job.hours) for job in down] == [(2, 3.0), (8, 1.5), (8, 2.0)]


def test_what_ran_at_midnight_runs_on_and_what_waited_waits(log):
    made = gp.import_file(log, kind="allocation", day="2026-03-02", gpus=16, gpus_per_node=8)
    rows = [(job.name, job.gpus, job.hours, job.earliest_hour, job.running_on) for job in made.scenario.batch]
    assert rows == [("1", 8, 2.0, 0.0, 0), ("4", 4, 1.0, 1.0, None)]
    assert made.scenario.rules.within_node
    assert made.choices["Before"].startswith("1 job ran when the day began")
    small = gp.import_file(log, kind="allocation", day="2026-03-02", gpus=4)
    assert small.scenario.batch[0].running_on is None
    assert "1 more ran then and find no free block" in small.choices["Before"]
    assert gp.plan(small.scenario, "fifo").check() == []


def test_the_busiest_day_is_taken_where_none_is_named(log):
    # submitted on 1 March: 8 x 4 h + 3 x 2 h + 12 x 1 h = 50 GPU-hours; on 2 March 4
    assert gp.import_file(log, kind="allocation").choices["Day"].startswith("2026-03-01, the day on which")


@pytest.mark.parametrize(("day", "steps"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-10-24", 24)])
def test_a_day_on_which_clocks_change_has_its_own_hours(day, steps):
    start = int(np.datetime64(day, "s").astype(np.int64))
    past = history(
        "t",
        np.array([2]),
        job=["a"],
        submit_s=[start + 12 * HOUR],
        elapsed_s=[60],
        gpus=[1],
        zone="Europe/Berlin",
    )
    scenario, _, _ = day_scenario(past, Wish(kind="allocation", day=day), "t")
    assert scenario.horizon.steps == steps


def test_types_are_joined_however_many_blanks_their_names_have(tmp_path):
    path = tmp_path / "jobs.csv"
    rows = ("a,0,0,4,3600,A100  80GB", "b,0,0,4,3600,A100 80GB", "c,60,60,2,600,V100")
    path.write_text("\n".join(("id,submit_s,start_s,gpus,run_s,gpu_type", *rows)), encoding="utf-8")
    made = gp.import_file(path, types=True)
    # a and b ran at the same time: 8 GPUs
    assert [(pool.gpu, pool.gpus) for pool in made.scenario.pools] == [("A100 80GB", 8), ("V100", 2)]
    assert made.scenario.jobs.gpu.tolist() == ["A100 80GB", "A100 80GB", "V100"]


def test_a_job_with_the_name_of_an_app_is_renamed_and_keeps_its_record(tmp_path):
    jobs, traffic = tmp_path / "jobs.csv", tmp_path / "chat.csv"
    rows = ("chat,{0} 01:00,{0} 02:00,2,3600", "chat (job),{0} 01:00,{0} 03:00,1,3600")
    table = "\n".join(row.format("2026-03-02") for row in ("id,submit,start,gpus,run_s", *rows))
    jobs.write_text(table, encoding="utf-8")
    traffic.write_text("time,rate\n2026-03-02 00:00,1\n2026-03-02 01:00,2\n", encoding="utf-8")
    made = gp.import_file(jobs, kind="allocation", traffic=traffic, service=Service(per_gpu=1.0), gpus=8)
    assert [app.name for app in made.scenario.realtime] == ["chat"]
    assert [job.name for job in made.scenario.batch] == ["chat (job) (2)", "chat (job)"]
    assert made.choices["Names"] == "An app has the name of a job, which is another here: chat (job) (2)."
    assert made.recorded.job.tolist() == ["chat (job) (2)", "chat (job)"]
    assert made.as_it_was(["fifo"]).record.figures["jobs_placed"] == 2


@pytest.mark.parametrize(
    ("choices", "path"),
    [
        ({"kind": "allocation", "budget": "user"}, "budget"),
        ({"kind": "allocation", "minimum_s": 60}, "minimum_s"),
        ({"sizes": "down"}, "sizes"),
        ({"step_minutes": 30}, "step_minutes"),
        ({"options": {"separator": ";"}}, "separator"),
    ],
)
def test_what_a_kind_or_a_format_does_not_have_is_refused(tmp_path, choices, path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("id,submit_s,gpus,run_s\na,0,4,3600\nb,60,2,600\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        gp.import_file(jobs, **choices)
    assert [mistake.path for mistake in error.value.mistakes] == [path]


def test_traffic_alone_has_no_choices_about_jobs(tmp_path):
    traffic = tmp_path / "chat.csv"
    traffic.write_text("time,rate\n2026-03-02 00:00,1\n2026-03-02 01:00,2\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        gp.import_file(traffic, every=2, sizes="down")
    assert [path for path, _ in mistakes(error)] == ["sizes", "every"]
    with pytest.raises(InputError, match="by: is a label of Prometheus"):
        gp.import_file(traffic, by="app", service=Service(per_gpu=1.0))
    with pytest.raises(
        InputError, match=r"timezones: is no option of this format .*; did you mean timezone\?"
    ):
        gp.import_file(traffic, service=Service(per_gpu=1.0), options={"timezones": 3})


# ------------------------------------------------------------------ names


def test_anonymous_files_hold_no_name_and_the_same_work(tmp_path):
    secret = "mallory"
    path = tmp_path / f"{secret}.csv"
    path.write_text(
        f"job,user,team,submit_s,gpus,run_s\n{secret}-1,{secret},{secret}s-lab,0,1,60\nx,bob,{secret}s-lab,9,2,60\n",
        encoding="utf-8",
    )
    plain = gp.import_file(path, budget="team/user")
    made = gp.import_file(path, budget="team/user", anonymise=True)
    for file in made.save(tmp_path / "anon.yaml"):
        assert secret not in file.read_text(encoding="utf-8")
        assert "bob" not in file.read_text(encoding="utf-8")
    assert secret not in repr(made)
    assert secret not in json.dumps(made.report())
    assert made.scenario.jobs.team.tolist() == ["team-1/user-1", "team-1/user-2"]
    for column in ("submit_s", "gpus", "run_s", "limit_s", "priority"):
        assert getattr(made.scenario.jobs, column).tolist() == getattr(plain.scenario.jobs, column).tolist()


def test_weights_and_ranks_are_by_the_names_of_the_file_also_without_names(log):
    made = gp.import_file(
        log, budget="user", weights={"user-2": 9.0}, priority="user", ranks={"user-3": 7}, anonymise=True
    )
    weights = {node.name: node.weight for node in made.scenario.budget}
    assert sorted(weights.values()) == [1.0, 1.0, 9.0]
    jobs = made.scenario.jobs
    assert dict(zip(jobs.team.tolist(), jobs.priority.tolist(), strict=True))[jobs.team[3]] == 7


def test_weights_of_users_hold_where_the_file_has_no_teams_also_without_names(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("id,submit_s,gpus,run_s,user\na,0,4,3600,ann\nb,60,2,600,bob\n", encoding="utf-8")
    for anonymise, heavy in ((False, "ann"), (True, "user-1")):
        made = gp.import_file(path, weights={"ann": 3.0}, anonymise=anonymise)
        assert {node.name: node.weight for node in made.scenario.budget}[heavy] == 3.0
        assert made.choices["Weights"] == "as asked for 1 name; 1 others have 1."
    with pytest.raises(InputError, match="weights: must be at the top of the tree"):
        gp.import_file(path, weights={"carl": 3.0}, anonymise=True)


def test_mistakes_of_an_anonymous_import_do_not_show_what_was_found(tmp_path):
    path = tmp_path / "mallory.csv"
    path.write_text(
        "job,submit_s,gpus,run_s\nb,0,1,60\na,0,mallory,60\nc,1,2,60\nd,2,2,60\n", encoding="utf-8"
    )
    with pytest.raises(InputError) as error:
        gp.import_file(path, anonymise=True)
    assert "mallory" not in str(error.value)
    assert error.value.mistakes[0].line == 3


def test_codes_with_a_key_are_those_of_every_file(log, tmp_path):
    other = tmp_path / "other.swf"
    other.write_text("; MaxProcs: 4\n9 0 0 60 1 -1 -1 1 60 -1 1 2 2 -1 1 -1 -1 -1\n", encoding="utf-8")
    key = b"sixteen letters!"
    first, second = (gp.import_file(path, anonymise=True, key=key).scenario for path in (log, other))
    assert set(second.jobs.team.tolist()) <= set(first.jobs.team.tolist())
    third = gp.import_file(other, anonymise=True, key=b"another 16 bytes").scenario
    assert set(third.jobs.team.tolist()).isdisjoint(first.jobs.team.tolist())


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=200), max_size=8))
def test_safe_names_are_different_printable_and_no_formulas(names):
    safe = safe_names(names, slash="-")
    assert len(set(safe.values())) == len(set(names)) == len(safe)
    for name in safe.values():
        assert name.isprintable()
        assert name.strip()
        assert "/" not in name
        assert len(name) <= LONGEST + 10
        assert not name.startswith(("=", "+", "-", "@"))


HOSTILE = st.text(
    st.characters(blacklist_categories=("Cs",)) | st.sampled_from("=+-@'\"\n\r,;/|\0<>"),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=5))
def test_hostile_names_survive_the_way_to_the_files_and_back(tmp_path_factory, names):
    n = len(names)
    past = history(
        "t",
        np.arange(2, n + 2),
        job=[name for name, _ in names],
        team=[team for _, team in names],
        submit_s=np.arange(n),
        start_s=np.arange(n),
        elapsed_s=np.full(n, 60),
        gpus=np.full(n, 2),
    )
    folder = tmp_path_factory.mktemp("names")
    for kind in ("fairshare", "allocation"):
        made = gp.import_history(past, kind=kind)
        made.save(folder / f"{kind}.yaml")
        again = gp.load(folder / f"{kind}.yaml")
        assert again.fingerprint == made.scenario.fingerprint
    for line in (folder / "fairshare.jobs.csv").read_text(encoding="utf-8").splitlines():
        assert not line.startswith(("=", "+", "-", "@"))


# ------------------------------------------------------------------ formats and traffic


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.swf", b"; x\n", "swf"),
        ("a.swf.gz", gzip.compress(b"1 2 3\n"), "swf"),
        ("a.txt", b"; Version: 2.2\n1 2\n", "swf"),
        ("a.txt", b"JobID|User|AllocTRES|State\n", "slurm"),
        ("a.csv", b"JobIDRaw,Account,ReqTRES\n", "slurm"),
        ("a.csv", b"job,submit_s,gpus,run_s\n", "jobs"),
        ("a.csv", "\ufeffTime;Requests\n".encode(), "hourly"),
        ("a.csv", "time,rate\n".encode("utf-16"), "hourly"),
        ("a.json", b' {"status":"success"}', "prometheus"),
        ("a.json", b"[\n {}]", "jobs"),
        ("a.yaml", b"kind: allocation\n", "scenario"),
    ],
)
def test_formats_are_told_by_name_and_first_line(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    assert format_of(path) == expected


def answer(values, start=1_772_323_200, step=3600):
    rows = [[start + step * k, str(value)] for k, value in enumerate(values)]
    metric = {"__name__": "rate", "model": "chat"}
    data = {"resultType": "matrix", "result": [{"metric": metric, "values": rows}]}
    return json.dumps({"status": "success", "data": data})


def test_traffic_becomes_the_apps_of_a_day(tmp_path):
    path = tmp_path / "traffic.json"
    path.write_text(answer([k % 24 for k in range(48)]), encoding="utf-8")
    service = Service(per_gpu=2.0, replica_gpus=2, priority=5)
    made = gp.import_file(path, zone="UTC", unit="requests/s", service=service)
    app = made.scenario.realtime[0]
    # a replica of 2 GPUs carries 4 requests/s: ceil(rate / 4) replicas, 1 at least
    assert app.demand == tuple(2 * max(1, -(-hour // 4)) for hour in range(24))
    assert (app.name, app.priority, made.scenario.cluster.gpus) == ("traffic", 5, 12)
    named = gp.import_file(path, zone="UTC", by="model", service=service).scenario.realtime
    assert [one.name for one in named] == ["chat"]
    with pytest.raises(InputError, match="must say how much one GPU carries"):
        gp.import_file(path, zone="UTC")


def test_gpus_in_use_are_the_apps_of_who_held_them(tmp_path):
    """Two GPUs of one namespace and one of another, read every half hour; the second is held from 12:00 on."""
    start = 1_772_323_200

    def series(uuid, namespace, first):
        labels = {
            "__name__": "DCGM_FI_DEV_GPU_UTIL",
            "UUID": uuid,
            "namespace": namespace,
            "pod": "p",
            "gpu": "0",
        }
        return {"metric": labels, "values": [[start + 1800 * k, "50"] for k in range(first, 48)]}

    rows = [series("GPU-1", "chat", 0), series("GPU-2", "chat", 24), series("GPU-3", "search", 0)]
    path = tmp_path / "dcgm.json"
    data = {"resultType": "matrix", "result": rows}
    path.write_text(json.dumps({"status": "success", "data": data}), encoding="utf-8")
    made = gp.import_file(path, zone="UTC", by="namespace")
    assert {app.name: app.demand for app in made.scenario.realtime} == {
        "chat": (1,) * 12 + (2,) * 12,
        "search": (1,) * 24,
    }
    (whole,) = gp.import_file(path, zone="UTC").scenario.realtime
    assert whole.demand == (2,) * 12 + (3,) * 12
    with pytest.raises(InputError, match="must be one of job, namespace, pod, container"):
        gp.import_file(path, by="node")
    with pytest.raises(InputError, match="must be GPUs, or left out"):
        gp.import_file(path, unit="requests/s")


def test_what_ran_is_kept_of_the_jobs_of_the_scenario(log):
    made = gp.import_file(log, first="2026-03-02")
    assert made.recorded.job.tolist() == ["1", "4"]
    # job 1 was submitted and started 2 h before midnight, job 4 an hour after it
    assert (made.recorded.start_s.tolist(), made.recorded.end_s.tolist()) == ([-7200, 3600], [7200, 7200])


def test_what_was_done_is_measured_beside_policies(log):
    """On 16 GPUs all of it could start at once; then job 2 waited for half an hour."""
    compared = gp.import_file(log).as_it_was(["fifo"])
    waits = {name: run.figures["mean_wait_s"] for name, run in compared.runs.items()}
    assert waits == {"as-it-was": 1800 / 4, "fifo": 0.0}
    day = gp.import_file(log, kind="allocation", day="2026-03-02").as_it_was(["fifo"])
    assert list(day.results) == ["as-it-was", "fifo"]
    untold = gp.import_history(history("t", np.array([2]), job=["a"], submit_s=[0], elapsed_s=[60], gpus=[1]))
    with pytest.raises(InputError, match="must tell when jobs started"):
        untold.as_it_was()


def test_traffic_shares_the_day_of_the_jobs(log, tmp_path):
    path = tmp_path / "gpus.json"
    path.write_text(answer([3] * 24), encoding="utf-8")
    made = gp.import_file(log, kind="allocation", day="2026-03-01", traffic=path, unit="GPUs")
    assert [app.demand for app in made.scenario.realtime] == [(3,) * 24]
    assert len(made.scenario.batch) == 3
    assert made.traffic[0].source == "gpus.json"
    with pytest.raises(InputError, match="must have traffic; gpus has some from"):
        gp.import_file(log, kind="allocation", day="2026-03-02", traffic=path, unit="GPUs")
    with pytest.raises(InputError, match="is for an allocation"):
        gp.import_file(log, traffic=path)


def test_many_jobs_are_a_line_each(tmp_path):
    n = 20_000
    past = history(
        "t",
        np.arange(2, n + 2),
        job=[f"j{k}" for k in range(n)],
        submit_s=np.arange(n),
        elapsed_s=np.full(n, 60),
        gpus=np.full(n, 1),
    )
    write_jobs(gp.import_history(past).scenario.jobs, tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_bytes().count(b"\n") == n + 1
