import threading
import time

from gpuplan_widgets.latest import Latest


def test_a_hundred_requests_during_one_call_make_one_more_call():
    calls, gate, inside = [], threading.Event(), threading.Event()

    def work() -> None:
        calls.append(threading.current_thread() is threading.main_thread())
        inside.set()
        gate.wait(5)

    latest = Latest(work)
    latest.ask()
    assert inside.wait(5)
    for _ in range(100):
        latest.ask()
    assert latest.busy
    gate.set()
    assert latest.wait(5)
    assert calls == [False, False]


def test_its_thread_ends_when_nothing_is_left_to_do():
    latest = Latest(lambda: None)
    latest.ask()
    assert latest.wait(5)
    deadline = time.monotonic() + 5
    while any(thread.name == "gpuplan-latest" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not latest.busy


def test_waiting_says_when_the_time_is_up():
    gate = threading.Event()
    latest = Latest(lambda: gate.wait(5) and None)
    latest.ask()
    assert not latest.wait(0.02)
    gate.set()
    assert latest.wait(5)
