"""What the columns of a table of jobs can mean, and the names that people give them."""

import re
from collections.abc import Mapping
from typing import Literal

Kind = Literal["text", "count", "moment", "duration", "state"]

#: What a column of a table of jobs can mean: kind of its cells, and what it is, for messages.
FIELDS: Mapping[str, tuple[Kind, str]] = {
    "job": ("text", "the identity of the job"),
    "name": ("text", "the name of the job"),
    "user": ("text", "the user"),
    "team": ("text", "the team (account, project, virtual cluster)"),
    "partition": ("text", "the partition"),
    "qos": ("text", "the quality of service"),
    "cluster": ("text", "the cluster"),
    "submit": ("moment", "the submission"),
    "eligible": ("moment", "when the job could have started"),
    "start": ("moment", "the start"),
    "end": ("moment", "the end"),
    "elapsed": ("duration", "the run time"),
    "wait": ("duration", "the wait"),
    "limit": ("duration", "the limit of the run time"),
    "gpus": ("count", "the number of GPUs"),
    "requested_gpus": ("count", "the number of GPUs asked for"),
    "gpu_milli": ("count", "the share of each GPU, in thousandths"),
    "gpu_percent": ("count", "the share of a GPU, in percent"),
    "instances": ("count", "the number of instances, each with the GPUs of the row"),
    "gpus_per_node": ("count", "the GPUs of each node"),
    "nodes": ("count", "the number of nodes"),
    "gpu_type": ("text", "the type of GPU"),
    "priority": ("count", "the priority"),
    "state": ("state", "the state"),
}

#: Names of columns, without signs and in small letters, that say what they mean.
_NAMES: Mapping[str, str] = {
    "job": "job jobid id jobidraw jobnumber jobno jobuid jobuuid jobidentifier appid applicationid podid uuid jobkey",
    "name": "name jobname title podname taskname jobtitle experiment runname",
    "user": "user username owner uid userid submittedby submitter benutzer nutzer utilisateur usuario",
    "team": "team account group groupname vc virtualcluster project projectname department tenant organisation "
    "organization namespace lab programme program projekt gruppe abteilung costcenter kostenstelle",
    "partition": "partition queuename jobqueue partitionname",
    "qos": "qos qualityofservice priorityclass",
    "cluster": "cluster clustername site datacenter datacentre",
    "submit": "submit submittime submitted submission submissiontime submittedtime submitts submitat submittedat "
    "created creationtime createdat createtime arrival arrivaltime arrived arrivedat queuedat enqueuedat timesubmitted "
    "timecreated submitdate submittimestamp eingereicht",
    "eligible": "eligible eligibletime eligibleat",
    "start": "start starttime started startedat begin begintime startts timestarted startdate launchtime launchedat "
    "scheduledtime scheduledat starttimestamp gestartet beginn startzeit",
    "end": "end endtime ended endedat finish finishtime finished finishedat finishts completedat completiontime endts "
    "timeended enddate stoptime stoppedat deletiontime deletedat endtimestamp beendet ende endzeit",
    "elapsed": "run runtime duration elapsed elapsedtime elapsedraw executiontime jobduration jobruntime walltimeused "
    "usedwalltime actualruntime realduration laufzeit dauer duree duracion",
    "wait": "wait waittime waiting waitingtime queuetime queueingtime queuingtime timeinqueue queuewait pendingtime "
    "delay wartezeit",
    "limit": "limit timelimit limittime timelimitraw walltimelimit requestedtime reqtime requestedwalltime reqwalltime "
    "maxruntime walltimerequested requestedwallclock zeitlimit",
    "gpus": "gpus numgpus numgpu ngpus ngpu gpunum gpucount gpuscount gpucnt allocgpus allocatedgpus gpusallocated "
    "numberofgpus noofgpus gpusused usedgpus gpunumber totalgpus anzahlgpus gpuanzahl numgpusallocated gpureq",
    "requested_gpus": "reqgpus requestedgpus gpusrequested gpurequested reqgpu gpurequest gpusreq requestedgpu",
    "gpu_milli": "gpumilli",
    "gpu_percent": "plangpu gpupercent",
    "instances": "instances instnum numinst ninstances numinstances replicas workers numworkers",
    "gpus_per_node": "gpuspernode gpupernode gpusperworker gpuperworker",
    "nodes": "nodes numnodes nnodes nodenum nodecount numberofnodes allocnodes",
    "gpu_type": "gputype gpumodel gpuspec gpukind accelerator acceleratortype gpuname gputyp",
    "priority": "priority prio jobpriority prioritaet",
    "state": "state status jobstate jobstatus outcome result endstate finalstate podphase phase zustand",
}

#: The meaning of a name, and whether the name alone tells it.
NAMES: Mapping[str, str] = {name: meaning for meaning, names in _NAMES.items() for name in names.split()}

#: Names that hint at a meaning, which the cells must bear out: of numbers, of moments, of texts.
HINTS: Mapping[str, Mapping[Kind, str]] = {
    "gpu": {"count": "gpus", "text": "gpu_type"},
    "queue": {"duration": "wait", "text": "partition"},
    "queued": {"duration": "wait", "moment": "submit"},
    "pending": {"duration": "wait"},
    "time": {"moment": "submit", "duration": "elapsed"},
    "timestamp": {"moment": "submit"},
    "date": {"moment": "submit"},
    "datetime": {"moment": "submit"},
    "walltime": {"duration": "elapsed"},
    "wallclock": {"duration": "elapsed"},
    "hours": {"duration": "elapsed"},
    "size": {"count": "gpus"},
    "devices": {"count": "gpus"},
    "numdevices": {"count": "gpus"},
    "accelerators": {"count": "gpus"},
    "kind": {"text": "gpu_type"},
}

_UNIT_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sekunden"), "s"),
    **dict.fromkeys(("ms", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "minuten"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "stunden"), "h"),
    **dict.fromkeys(("d", "day", "days", "tage"), "d"),
}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def plain_name(name: str) -> tuple[str, str]:
    """A name without signs and capitals, and the unit at its end: ``Run time (min)`` is ``runtime, min``."""
    cut = name[:100].replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("é", "e")
    words = [word.lower() for word in _WORD.findall(cut)]
    if len(words) > 1 and words[-1] in _UNIT_WORDS:
        unit = _UNIT_WORDS[words.pop()]
        return "".join(words[:-1] if len(words) > 1 and words[-1] == "in" else words), unit
    return "".join(words), ""
