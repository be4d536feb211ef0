"""Requests of language-model services as tasks: hand-made files anywhere, counts where the real files are present."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.packing.model import GIB, Gpus, PackingScenario, ServedModel
from gpuplan.packing.task_table import read_tasks
from gpuplan.packing.tasks import tasks
from gpuplan.traces import azure_llm, mooncake, servegen_clients
from gpuplan.traces.llm_tasks import ServiceRule, deal, together

#: 1,000 tokens in take 0.1 s, 50 tokens out 1 s, every request 0.5 s.
RULE = ServiceRule(10_000, 50, 0.5)

AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,1000,50
2023-11-16 18:15:47.6805905,0,0
2023-11-16 18:15:46.7805900,2000,100
,5,5
2023-11-16 18:16:00.0000000,x,5
2023-11-16 18:16:01.0000000,5,-1
2023-11-16 18:16:02.0000000,5,9999999
"""

SCENARIO = PackingScenario(
    "s", Gpus(1, 80 * GIB), (ServedModel("other", GIB, GIB), ServedModel("chat", GIB, GIB)), tasks=tasks([])
)


def test_azure_requests_come_after_the_first_and_take_what_the_rule_says(tmp_path: Path) -> None:
    path = tmp_path / "conv.csv"
    path.write_text(AZURE)
    made = azure_llm.tasks(path, RULE)
    assert made.tasks.arrival_us.tolist() == [
        0,
        100_000,
        1_000_000,
    ]  # half a microsecond is rounded to the even one
    # 0.5 + 0.1 + 1; 0.5 + 0.2 + 2; 0.5
    assert made.tasks.service_us.tolist() == [1_600_000, 2_700_000, 500_000]
    assert made.tasks.tokens_in.tolist() == [1000, 2000, 0]
    assert made.tasks.tokens_out.tolist() == [50, 100, 0]
    assert (made.account.read, made.account.used) == (7, 3)
    assert made.account.excluded == (("the time is unknown", 1), ("a number of tokens is unknown", 3))
    assert made.account.rules[0] == (
        "Service time alone on a GPU: 0.5 s + tokens in / 10000 per s + tokens out / 50 per s; "
        "the trace does not say it."
    )
    slower = azure_llm.tasks(path, RULE, stretch=2)
    assert slower.tasks.arrival_us.tolist() == [0, 200_000, 2_000_001]


def test_mooncake_times_are_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "conversation.csv.gz"
    rows = (
        "timestamp,input_length,output_length\n3000,10,1\n0,20,2\n3000,5,0\n-1,1,1\n,1,1\n6000,,1\n1e30,1,1\n"
    )
    path.write_bytes(gzip.compress(rows.encode()))
    made = mooncake.tasks(path, ServiceRule(10, 1))
    assert made.tasks.arrival_us.tolist() == [0, 3_000_000, 3_000_000]
    assert made.tasks.service_us.tolist() == [4_000_000, 500_000, 2_000_000]
    assert (made.account.read, made.account.used) == (7, 3)
    assert made.account.excluded == (("the time is unknown", 3), ("a number of tokens is unknown", 1))


def test_a_trace_is_a_task_file_and_goes_into_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "conv.csv"
    path.write_text(AZURE)
    made = azure_llm.tasks(path, RULE)
    made.save(tmp_path / "tasks.csv.gz")
    assert read_tasks(tmp_path / "tasks.csv.gz", ["chat"]).tasks == made.tasks
    put = made.put_into(SCENARIO)
    assert put.tasks is not None
    assert put.tasks.model.tolist() == [1, 1, 1]
    assert put.notes[0] == "conv.csv: 7 requests read, 3 used."
    assert azure_llm.ATTRIBUTION in put.notes
    with pytest.raises(
        InputError, match=r"must be a model of the scenario; did you mean chat\? \(got 'chatt'\)"
    ):
        azure_llm.tasks(path, RULE, "chatt").put_into(SCENARIO)


def test_models_are_dealt_by_shares_and_by_a_seed() -> None:
    model, names = deal({"a": 1, "b": 0, "c": 3}, 40_000, 1)
    assert names == ("a", "b", "c")
    share = np.bincount(model, minlength=3) / 40_000
    assert share[1] == 0
    assert share[2] == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 40_000) ** 0.5)
    assert (deal({"a": 1, "b": 0, "c": 3}, 40_000, 1)[0] == model).all()
    assert (deal({"a": 1, "b": 0, "c": 3}, 40_000, 2)[0] != model).any()
    for shares in ({}, {"a": -1.0}, {"a": 0.0}, {"a": float("nan")}):
        with pytest.raises(InputError, match="must be shares"):
            deal(shares, 1, 1)


def test_rules_that_cannot_be() -> None:
    with pytest.raises(InputError, match="3 mistakes"):
        ServiceRule(0, float("inf"), -1)


CLIENTS = "client,t_s,rate_rps,cv\n" + "".join(
    f"{client},{600 * bin_},{rate},{cv}\n"
    for client, rate, cv in ((0, 2, 1), (7, 0.5, 3))
    for bin_ in range(150)
    if client == 0 or bin_ % 2 == 0
)
TOKENS = """\
model,client,window_start_s,mean_input_tokens,mean_output_tokens,mean_text_tokens,mean_image_tokens,mean_image_count
m,0,0,100,10,,,
m,0,21600,200,20,,,
other,7,0,9999,9999,,,
"""


@pytest.fixture
def clients(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "clients.csv").write_text(CLIENTS)
    (tmp_path / "tokens.csv").write_text(TOKENS)
    return tmp_path / "clients.csv", tmp_path / "tokens.csv"


def test_clients_are_tenants_with_their_rates_and_tokens(clients: tuple[Path, Path]) -> None:
    """Twelve hours: client 0 makes 2 / s, client 7 makes 0.5 / s in every other ten minutes."""
    made = servegen_clients.client_tasks(*clients, RULE, "m", start_s=0, hours=12, token_cv=0)
    own = made.tasks.tenant == "client-0"
    # 86,400 and 10,800 are expected; deviations are cv x the root of that (3 x 104 = 312)
    assert own.sum() == pytest.approx(86_400, abs=4 * 86_400**0.5)
    assert (~own).sum() == pytest.approx(10_800, abs=4 * 3 * 10_800**0.5)
    assert set(made.tasks.tenant.tolist()) == {"client-0", "client-7"}
    # even bins only
    assert set((made.tasks.arrival_us[~own] // 600_000_000 % 2).tolist()) == {0}
    late = made.tasks.arrival_us >= 21_600 * 10**6
    assert set(made.tasks.tokens_in[own & late].tolist()) == {200}
    assert set(made.tasks.tokens_out[own & ~late].tolist()) == {10}
    assert set(made.tasks.tokens_in[~own].tolist()) == {
        150
    }  # unknown: the mean of the windows that are known
    assert dict(made.account.changed) == {
        "requests whose client's tokens are unknown: the mean of the others": int((~own).sum())
    }
    assert (made.account.read, made.account.used) == (225, 72 + 36)


def test_gaps_of_a_client_have_its_coefficient_of_variation(clients: tuple[Path, Path]) -> None:
    made = servegen_clients.client_tasks(*clients, RULE, "m", start_s=0, hours=25, scale=4)
    at = made.tasks.arrival_us[made.tasks.tenant == "client-0"]
    gaps = np.diff(at)
    assert len(gaps) > 700_000
    assert gaps.mean() == pytest.approx(125_000, rel=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.01)


def test_a_client_keeps_its_requests_when_others_go(tmp_path: Path, clients: tuple[Path, Path]) -> None:
    alone = tmp_path / "alone.csv"
    alone.write_text("".join(line + "\n" for line in CLIENTS.splitlines() if not line.startswith("0,")))
    both = servegen_clients.client_tasks(*clients, RULE, "m", start_s=0, hours=2).tasks
    one = servegen_clients.client_tasks(alone, clients[1], RULE, "m", start_s=0, hours=2).tasks
    mine = both.tenant == "client-7"
    assert one.arrival_us.tolist() == both.arrival_us[mine].tolist()
    assert one.tokens_in.tolist() == both.tokens_in[mine].tolist()


def test_several_traces_on_one_clock(tmp_path: Path, clients: tuple[Path, Path]) -> None:
    (tmp_path / "conv.csv").write_text(AZURE)
    azure = azure_llm.tasks(tmp_path / "conv.csv", RULE)
    served = servegen_clients.client_tasks(*clients, RULE, "m", served_as="other", start_s=0, hours=0.5)
    both = together([azure, served, azure])
    assert both.models == ("chat", "other")
    assert len(both.tasks) == 6 + len(served.tasks)
    assert (np.diff(both.tasks.arrival_us) >= 0).all()
    chats = both.tasks.model == 0
    assert both.tasks.tokens_in[chats].tolist() == [1000, 1000, 2000, 2000, 0, 0]
    assert set(both.tasks.tenant[~chats].tolist()) == {"client-0", "client-7"}
    assert both.account.used == 2 * azure.account.used + served.account.used
    assert both.account.rows == "requests and client bins"
    assert len(both.put_into(SCENARIO).tasks or ()) == len(both.tasks)
    with pytest.raises(InputError, match="at least one"):
        together([])


def test_what_cannot_be_drawn_is_a_sentence(clients: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="4 mistakes"):
        servegen_clients.client_tasks(*clients, RULE, "m", start_s=5, hours=0, scale=0, token_cv=-1)
    with pytest.raises(InputError, match="must be small enough for 5,000,000 requests"):
        servegen_clients.client_tasks(*clients, RULE, "m", start_s=0, scale=1e5)
    with pytest.raises(InputError, match="must be a model with known tokens"):
        servegen_clients.client_tasks(*clients, RULE, "mm", start_s=0)
    assert len(servegen_clients.client_tasks(*clients, RULE, "m", start_s=600 * 1000).tasks) == 0


# ---------------------------------------------------------------------- the real files


def test_the_azure_hour(shared: Path) -> None:
    """As its description says: 19,366 requests, 5.5 a second, a coefficient of variation of 1.1."""
    made = azure_llm.tasks(shared / "traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv.gz", RULE)
    assert (made.account.read, made.account.used, made.account.excluded) == (19_366, 19_366, ())
    gaps = np.diff(made.tasks.arrival_us) / 1e6
    assert 1 / gaps.mean() == pytest.approx(5.5, abs=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(1.1, abs=0.05)


def test_the_mooncake_hour(shared: Path) -> None:
    """As its description says: 12,031 requests, median 6,909 tokens in, at most 126,195, times in steps of 3 s."""
    made = mooncake.tasks(shared / "traces/mooncake/conversation_trace.csv.gz", RULE)
    assert (made.account.read, made.account.used) == (12_031, 12_031)
    assert (np.median(made.tasks.tokens_in), made.tasks.tokens_in.max()) == (6909, 126_195)
    assert ((made.tasks.arrival_us + 3_000) % 3_000_000).max() <= 6_000  # to within three milliseconds


def test_the_servegen_evening(shared: Path) -> None:
    folder = shared / "traces/servegen"
    files = folder / "clients_m-large.csv.gz", folder / "client_mean_tokens_6h.csv.gz"
    made = servegen_clients.client_tasks(*files, RULE, "m-large", scale=0.05)
    assert made.account.read == 72_327
    amounts = {what: amount for what, amount, _ in made.account.amounts}
    assert (
        0.8 * amounts["clients"] < len(set(made.tasks.tenant.tolist())) <= amounts["clients"]
    )  # small ones draw none
    assert amounts["requests drawn"] == pytest.approx(amounts["requests expected by the rates"], rel=0.1)
