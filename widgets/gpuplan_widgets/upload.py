"""A person's own file in an explorer: upload or path, its account, its mistakes beside the control."""

import html
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import ipywidgets as W

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.loading import load
from gpuplan.traces.formats import format_of, own_columns
from gpuplan_widgets import messages
from gpuplan_widgets.guest import guest, limited
from gpuplan_widgets.upload_words import (
    account_html,
    choices_html,
    guess_html,
    mistakes_html,
    record_html,
    sentence,
)

#: Said above the picture while a file is not in it.
OLD = "Old picture: not from the new file"

_NOTE = "Old picture: not from the present settings"

#: Files that may be chosen; several may be uploaded together, such as a scenario and its table of jobs.
ACCEPTED = ".yaml,.yml,.csv,.tsv,.txt,.psv,.log,.gz,.swf,.json,.parquet"

#: What can be said about a file of jobs or traffic, by the kind of the explorer: name, words, example.
FIELDS = {
    "allocation": (
        ("day", "Day", "the busiest"),
        ("gpus", "GPUs", "inferred"),
        ("zone", "Time zone", "Europe/Berlin"),
        ("per_gpu", "Traffic per GPU", "requests/s"),
    ),
    "fairshare": (
        ("first", "From", "the beginning"),
        ("last", "To", "the end"),
        ("gpus", "GPUs", "inferred"),
        ("zone", "Time zone", "Europe/Berlin"),
    ),
    "packing": (),
}

_WHAT = {
    "allocation": "A scenario (.yaml), sacct output, a workload log (.swf), a table of jobs, or traffic",
    "fairshare": "A scenario (.yaml), sacct output, a workload log (.swf), or a table of jobs",
    "packing": "A scenario (.yaml), with its table of tasks if it has one",
}


class FileOpener:
    """The part of an explorer that opens files.

    Parameters
    ----------
    explorer
        Has a `chart` and an `account` to mark as old.
    kind
        Of its scenarios.
    take
        Shows a scenario.

    Attributes
    ----------
    fold : Accordion
        The whole, folded away.
    upload, path, again, go_on, confirm, dismiss
        The controls; `fields` are those about the import, by name.
    said, report : HTML
        The sentence beside the control; mistakes, or the account.
    imported
        What became of the file on screen; None for a scenario file.
    """

    def __init__(self, explorer: Any, kind: str, take: Callable[[Any], None]) -> None:
        self._explorer, self._kind, self._take = explorer, kind, take
        self._folder: Path | None = None  # of what was uploaded
        self._last: tuple[Path, Any] | None = None  # the file opened last, and how its columns are read
        self._waits = False  # it is not on screen
        self._by_rows = False  # it is a table of jobs, which can be read without some rows
        self.imported: Any = None
        self._build()
        self.upload.observe(lambda _change: self._uploaded(), "value")
        self.path.observe(lambda _change: self._typed(), "value")
        self.again.on_click(lambda _button: self._again(strict=True))
        self.go_on.on_click(lambda _button: self._again(strict=False))
        for order, button in self.confirm.items():
            button.on_click(lambda _button, order=order: self._confirmed(order))
        self.dismiss.on_click(lambda _button: self._dismissed())

    # ------------------------------------------------------------------ parts

    def _build(self) -> None:
        self.upload = W.FileUpload(accept=ACCEPTED, multiple=True, description="Upload")
        self.path = W.Text(
            placeholder="or a path on the machine of the kernel, and Enter",
            continuous_update=False,
            layout=W.Layout(width="330px", max_width="100%"),
        )
        self.again = W.Button(
            description="Read again",
            tooltip="Read the last file again, with what the fields say",
            layout=W.Layout(width="auto"),
        )
        self.fields = {
            name: W.Text(
                description=words, placeholder=hint, layout=W.Layout(width="230px", max_width="100%")
            )
            for name, words, hint in FIELDS[self._kind]
        }
        self.go_on = W.Button(description="Go on", layout=W.Layout(width="auto"))
        self.confirm: dict[Literal["", "day-first", "month-first"], Any] = {
            "": W.Button(description="Use these columns", layout=W.Layout(width="auto")),
            "day-first": W.Button(description="Days first (31.12.)", layout=W.Layout(width="auto")),
            "month-first": W.Button(description="Months first (12/31)", layout=W.Layout(width="auto")),
        }
        self.dismiss = W.Button(description="Keep the old picture", layout=W.Layout(width="auto"))
        self.said = messages.place("gp-message-file")
        self.report = W.HTML("")
        way = [self.upload, self.again] if guest() else [self.upload, self.path, self.again]
        classes = {"file-upload": self.upload, "file-path": self.path, "file-again": self.again}
        classes |= {"file-go-on": self.go_on, "file-dismiss": self.dismiss, "file-report": self.report}
        classes |= {f"file-{name.replace('_', '-')}": widget for name, widget in self.fields.items()}
        classes |= {f"file-confirm{'-' + order if order else ''}": b for order, b in self.confirm.items()}
        for name, widget in classes.items():
            widget.add_class(f"gp-{name}")
        hint = W.HTML(f'<span class="gp-hint">{html.escape(_WHAT[self._kind])}. {_stays()}</span>')
        wrap = W.Layout(flex_flow="row wrap", align_items="center")
        buttons = W.HBox([self.go_on, *self.confirm.values(), self.dismiss], layout=wrap)
        parts = [W.HBox(way, layout=wrap)]
        if self.fields:
            parts.append(W.HBox(list(self.fields.values()), layout=wrap))
        self.fold = W.Accordion(
            [W.VBox([hint, *parts, self.said, buttons, self.report])],
            titles=("Your own file",),
            selected_index=None,
        )
        self.fold.add_class("gp-file")
        self._offer()

    def _offer(
        self, rows: int = 0, orders: Sequence[str] = (), *, old: bool = False, counted: bool = False
    ) -> None:
        """Show the buttons that make sense now; `counted`: of the rows, more are wrong than are named."""
        these = f"these {rows:,} rows" if not counted else "these rows"
        self.go_on.description = f"Go on without {'this row' if rows == 1 else these}"
        shown = {self.go_on: rows > 0, self.dismiss: old}
        shown |= {button: order in orders for order, button in self.confirm.items()}
        for button, wanted in shown.items():
            button.layout.display = "" if wanted else "none"

    # ------------------------------------------------------------------ a file comes

    def _uploaded(self) -> None:
        """Put what was uploaded into a folder of its own, and open it; nothing may leave this callback."""
        files = self.upload.value
        if not files:
            return
        try:
            self._small(files)
            paths = [self._kept(file) for file in files]
        except Exception as error:
            self._fail(error, None)
            return
        finally:
            self.upload.value = ()  # the same file can be uploaded again
        scenarios = [path for path in paths if path.suffix.lower() in (".yaml", ".yml")]
        self.open_file((scenarios or paths)[0])

    def _small(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Refuse what is larger than a guest may bring, the files that are kept already included.

        Raises
        ------
        InputError
            With the rule.
        """
        limits = guest()
        if limits is None:
            return
        names = {_plain_name(file) for file in files}
        kept = self._folder.iterdir() if self._folder else ()
        size = sum(len(file["content"]) for file in files)
        size += sum(path.stat().st_size for path in kept if path.name not in names)
        if size > limits.upload_bytes:
            rule = f"all files together must have at most {limits.upload_bytes / 1e6:g} MB here"
            raise InputError("upload", [Mistake("", rule, f"{size / 1e6:.1f} MB")])

    def _kept(self, file: Mapping[str, Any]) -> Path:
        """Write an uploaded file where only this opener looks; of its name only the last part counts."""
        name = _plain_name(file)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="gpuplan-upload-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        path = self._folder / name
        path.write_bytes(bytes(file["content"]))
        return path

    def _typed(self) -> None:
        text = self.path.value.strip()
        if text and guest() is None:
            self.open_file(Path(text).expanduser())

    def _again(self, *, strict: bool) -> None:
        if self._last is None:
            messages.say(self.said, "Upload a file, or write its path.")
            return
        path, mapping = self._last
        self.open_file(path, strict=strict, mapping=mapping)

    def _confirmed(self, order: Literal["", "day-first", "month-first"]) -> None:
        """The columns as they are shown are right, or the order of dates is told."""
        if self._last is None:
            return
        from gpuplan.traces.jobs_table import guess

        path, mapping = self._last
        try:
            found = mapping or guess(path)
            found = found.changed(date_order=order) if order else found.confirm()
        except Exception as error:
            self._fail(error, path)
            return
        self.open_file(path, mapping=found)

    def open_file(self, path: str | Path, *, strict: bool = True, mapping: Any = None) -> bool:
        """Open a file and show it; say beside the control what is wrong, and mark the picture as old meanwhile.

        Parameters
        ----------
        path
            A scenario file, or a file of jobs or traffic.
        strict
            Whether rows that cannot be read keep the whole file out.
        mapping
            What the columns of a table of jobs mean; None: as guessed, where that is sure.

        Returns
        -------
        bool
            Whether it is on screen.
        """
        target = Path(path)
        self._last, self._waits, self._by_rows = (target, mapping), True, False
        messages.say(self.said, "")
        self.report.value = '<span role="status">Reading …</span>'
        self._offer()
        try:
            with limited():
                scenario, imported, question = self._read(target, strict, mapping)
            if question is not None:
                self._ask(target, question)
                return False
            self._waits, self.imported = False, imported
            self._explorer.chart.note = _NOTE
            self._take(scenario)
            self.report.value = self._shown(scenario)
        except Exception as error:  # nobody sees the traceback of a callback
            self._fail(error, target)
            return False
        return True

    def _read(self, path: Path, strict: bool, mapping: Any) -> tuple[Any, Any, Any]:
        """The scenario, what became of the rows, and the columns that must be confirmed first (or None)."""
        kind = format_of(path)
        self._by_rows = kind in ("slurm", "swf", "jobs")
        if kind == "scenario":
            found = load(path)
            if found.kind != self._kind:
                rule = f"must be {self._kind} here; gpuplan.explore opens the explorer of the other kinds"
                raise InputError(path.name, [Mistake("kind", rule, found.kind)])
            return found, None, None
        if self._kind == "packing":
            rule = "must be a scenario file (.yaml): no other file tells the memory of models"
            raise InputError(path.name, [Mistake("", rule)])
        options: dict[str, Any] = {}
        if kind == "jobs":
            question = self._columns(path, mapping, options)
            if question is not None:
                return None, None, question
        from gpuplan.traces.importing import import_file

        made = import_file(
            path, kind, strict=strict, progress=self._progress, options=options, **self._settings()
        )
        return made.scenario, made, None

    def _columns(self, path: Path, mapping: Any, options: dict[str, Any]) -> Any:
        """What must be asked about the columns of a table; None: nothing."""
        if own_columns(path):
            return None  # published tables with readers of their own
        from gpuplan.traces.jobs_table import guess

        found = guess(path) if mapping is None else mapping
        if not found.missing and found.open:
            return found
        if mapping is not None:
            options["mapping"] = mapping
        return None

    def _settings(self) -> dict[str, Any]:
        """What the fields say.

        Raises
        ------
        InputError
            For a number that is none.
        """
        said = {name: widget.value.strip() for name, widget in self.fields.items() if widget.value.strip()}
        found: dict[str, Any] = {"kind": self._kind}
        mistakes = []
        for name, text in said.items():
            if name == "gpus":
                if text.isascii() and text.isdecimal() and len(text) < 10:
                    found[name] = int(text)
                else:
                    mistakes.append(Mistake("GPUs", "must be a whole number", text))
            elif name == "per_gpu":
                from gpuplan.inputs.fields import number
                from gpuplan.traces.to_scenario_traffic import Service

                amount = number(text)
                if amount is None or amount <= 0:
                    mistakes.append(Mistake("Traffic per GPU", "must be a number above 0", text))
                else:
                    found["service"] = Service(per_gpu=float(amount))
            else:
                found[name] = text
        if mistakes:
            raise InputError("Your own file", mistakes)
        return found

    def _progress(self, done: int, total: int) -> None:
        self.report.value = f'<span role="status">Reading … {100 * done // max(total, 1)} %</span>'

    # ------------------------------------------------------------------ showing

    def _shown(self, scenario: Any) -> str:
        if self.imported is None:
            return f"<p>On screen: {html.escape(shorten(scenario.name, 120))}, as its file says.</p>"
        made = self.imported
        said = [f"{topic}: {words}" for topic, words in made.choices.items()]
        accounts = "".join(account_html(one, said) for one in (made.account, *made.traffic))
        return choices_html(made) + accounts + record_html(made, self._results(scenario))

    def _results(self, scenario: Any) -> dict[str, Any]:
        """What is on screen of a scenario, by side and policy; nothing while it is still computed."""
        if self._explorer.scenario is not scenario:
            return {}
        found = self._explorer.runs if hasattr(self._explorer, "runs") else self._explorer.plans
        return {f"{side}: {one.policy}": one for side, one in found.items()}

    def _ask(self, path: Path, found: Any) -> None:
        """Show what the columns are taken for, and wait."""
        self._last = (path, found)
        messages.say(self.said, f"{shorten(path.name, 80)}: what its columns mean must be confirmed first.")
        self.report.value = guess_html(found)
        dates = bool(found.confirm().open)
        self._offer(orders=("day-first", "month-first") if dates else ("",), old=True)
        self.remind()

    def _fail(self, error: Exception, path: Path | None) -> None:
        """Say what is wrong with a file beside the control, and mark the picture as old."""
        self._waits = True
        messages.say(self.said, sentence(error))
        told = error.mistakes if isinstance(error, InputError) else ()
        rows = len({one.line for one in told if one.line is not None and one.line > 1})
        whole = any(one.line is None and not one.more for one in told)
        rows = 0 if whole or path is None or not self._by_rows else rows
        self.report.value = self._without_folder(mistakes_html(error))
        self._offer(rows, old=True, counted=any(one.more for one in told))
        self.remind()

    def _without_folder(self, text: str) -> str:
        """A text that does not tell where uploads are kept."""
        return text if self._folder is None else text.replace(f"{self._folder}/", "")

    def remind(self) -> None:
        """Mark the picture as old while a file waits that is not in it."""
        if not self._waits:
            return
        self._explorer.chart.note = OLD
        self._explorer.chart.old = True
        self._explorer.account.mark(old=True)

    def _dismissed(self) -> None:
        """Forget the file; the picture is that of its settings again."""
        self._waits = False
        messages.say(self.said, "")
        self.report.value = ""
        self._offer()
        self._explorer.chart.note = _NOTE
        self._explorer.chart.old = False
        self._explorer.account.mark(old=False)


def _plain_name(file: Mapping[str, Any]) -> str:
    """Name of an uploaded file: of a path only its last part."""
    name = str(file["name"]).replace("\\", "/").rpartition("/")[2].replace("\0", "").strip(". ")
    return name[-120:] or "upload"


def _stays() -> str:
    """Where a file goes."""
    limits = guest()
    if limits is None:
        return "Nothing leaves this machine."
    most = f"{limits.upload_bytes / 1e6:g} MB"
    return f"At most {most}; it goes to the computation of this page alone, and is deleted with it."
