"""Published tables of jobs, told by their columns, with what their descriptions say and do not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A published table of jobs, told by its columns.

    Attributes
    ----------
    name
        As people call it.
    needs
        Columns that tell it.
    columns
        Column and unit of each field.
    states
        Words for states that mean something else elsewhere.
    identity
        Columns that are the identity of a row together; the first is that of the job of which it is a part.
    open_at_end
        A row in state ``running`` whose end is the last moment of the file still ran when the file was cut; one with
        an earlier end was deleted while it ran.
    rules
        Sentences about what the table says and does not, and where it is from.
    """

    name: str
    needs: frozenset[str]
    columns: Mapping[str, tuple[str, str]]
    states: Mapping[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    open_at_end: bool = False
    rules: tuple[str, ...] = ()


_HELIOS = {
    "job": ("job_id", ""),
    "user": ("user", ""),
    "gpus": ("gpu_num", ""),
    "state": ("state", ""),
    "submit": ("submit_time", ""),
    "start": ("start_time", ""),
    "end": ("end_time", ""),
}

#: The published tables. Philly: `msr-fiddle/philly-traces` as one row per job (`gaow0007/TitanSched`). Helios:
#: `S-Lab-System-Group/HeliosData`, README. Acme: `InternLM/AcmeTrace`, README. openb: `alibaba/clusterdata`,
#: cluster-trace-gpu-v2023, README. PAI: the same, cluster-trace-gpu-v2020, README.
KNOWN: tuple[KnownTable, ...] = (
    KnownTable(
        "Philly jobs",
        frozenset({"timestamp", "duration", "num_gpus", "cluster"}),
        {
            "submit": ("timestamp", ""),
            "elapsed": ("duration", "s"),
            "gpus": ("num_gpus", ""),
            "team": ("cluster", ""),
        },
        rules=(
            "Philly jobs: the team is the virtual cluster; the run time is that of all attempts; neither start, wait, "
            "state nor user is told. Other files of the trace say that its clock is that of Los Angeles.",
            "Data: Microsoft Philly trace (Jeon and others, USENIX ATC 2019), CC BY 4.0.",
        ),
    ),
    KnownTable(
        "Kalos jobs (Acme)",
        frozenset(
            {"job_id", "user", "gpu_num", "state", "submit_time", "start_time", "end_time", "fail_time"}
        ),
        _HELIOS,
        rules=(
            "Kalos jobs: the run time is end_time - start_time, as duration counts from the submission in this table.",
            "Data: Acme trace (Hu and others, NSDI 2024), CC BY 4.0.",
        ),
    ),
    KnownTable(
        "Seren jobs (Acme)",
        frozenset({"job_id", "user", "gpu_num", "state", "submit_time", "start_time", "end_time", "type"}),
        {**_HELIOS, "elapsed": ("duration", "s"), "wait": ("queue", "s")},
        rules=("Data: Acme trace (Hu and others, NSDI 2024), CC BY 4.0.",),
    ),
    KnownTable(
        "Helios jobs",
        frozenset({"job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time"}),
        {**_HELIOS, "team": ("vc", ""), "elapsed": ("duration", "s"), "wait": ("queue", "s")},
        rules=(
            "Helios jobs: the team is the virtual cluster. No zone is written (the data centre is in China).",
            "Data: Helios trace (Hu and others, SC 2021), CC BY 4.0.",
        ),
    ),
    KnownTable(
        "openb pods",
        frozenset({"name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"}),
        {
            "job": ("name", ""),
            "gpus": ("num_gpu", ""),
            "gpu_milli": ("gpu_milli", ""),
            "gpu_type": ("gpu_spec", ""),
            "qos": ("qos", ""),
            "state": ("pod_phase", ""),
            "submit": ("creation_time", "s"),
            "start": ("scheduled_time", "s"),
            "end": ("deletion_time", "s"),
        },
        open_at_end=True,
        rules=(
            "openb pods: GPUs are num_gpu x gpu_milli / 1000; times are seconds after an untold zero; neither user nor "
            "team is told.",
            "Data: Alibaba cluster trace GPU 2023 (Weng and others, USENIX ATC 2023), Apache-2.0.",
        ),
    ),
    KnownTable(
        "PAI tasks",
        frozenset({"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_gpu"}),
        {
            "job": ("job_name", ""),
            "name": ("task_name", ""),
            "instances": ("inst_num", ""),
            "gpu_percent": ("plan_gpu", ""),
            "gpu_type": ("gpu_type", ""),
            "state": ("status", ""),
            "submit": ("submit_time", "s"),
            "user": ("user", ""),
            "start": ("start_time", "s"),
            "end": ("end_time", "s"),
        },
        states={"terminated": "completed"},
        identity=("job_name", "task_name"),
        rules=(
            "PAI tasks: GPUs are inst_num x plan_gpu / 100; of the states only Terminated is a success. Times are "
            "seconds that show the hour and weekday of Shanghai, on days that are not the real ones.",
            "Data: Alibaba cluster trace GPU 2020 (Weng and others, NSDI 2022).",
        ),
    ),
)


#: Columns of published files that have no header, by how the names of the files begin.
HEADERS: Mapping[str, tuple[str, ...]] = {
    "pai_task_table": (
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        "gpu_type",
    ),
    "pai_job_table": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
}


def header_of(file_name: str, text: str) -> tuple[str, ...] | None:
    """Columns of a published file without a header; None where the file is another, or has one."""
    found = next((columns for start, columns in HEADERS.items() if file_name.startswith(start)), None)
    return None if found is None or text.lstrip().startswith(found[0]) else found


def known_table(names: tuple[str, ...]) -> KnownTable | None:
    """The published table that has these columns; None where there is none."""
    return next((table for table in KNOWN if table.needs <= set(names)), None)
