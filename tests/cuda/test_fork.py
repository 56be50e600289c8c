"""A fork after import, and after the questions that start nothing, is harmless."""

from __future__ import annotations

from helpers import fresh

ASK = """
    import os, sys
    import tensorplay as tp, tensorplay.accelerator, tensorplay.doctor
    tensorplay.doctor.text(tensorplay.doctor.report()), tp.accelerator.current_accelerator(check_available=True)
    tp.accelerator.is_available(), tp.accelerator.device_count(), tp.cuda.get_arch_list(), tp.cuda.is_initialized()
    tp.cuda.is_available(), tp.cuda.device_count(), tp.cuda.unavailable_reason(), repr(tp.device("cuda:1"))
    tp.cuda.memory_stats(), tp.cuda.memory_summary(), tp.cuda.manual_seed_all(3)
    tp.manual_seed(4)
"""
USE = """
    def use():
        assert tp.ones(10, device="cuda").sum().item() == 10
"""
REFUSE = """
    import os, signal
    import tensorplay as tp
    def refuse(*calls):
        signal.alarm(20)
        for call in calls:
            try:
                call()
            except tp.AcceleratorError as error:
                assert error.name == "cudaErrorInitializationError", error.name
                assert str(error).count("use the start method 'spawn'") == 1, error
            else:
                os._exit(1)
"""


def test_child_uses_the_device_after_questions_in_the_parent(gpu: None) -> None:
    code = (
        ASK
        + USE
        + """
    child = os.fork()
    if not child:
        use()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    use()
    """
    )
    fresh.run(code)


def test_multiprocessing_by_fork(gpu: None) -> None:
    code = (
        ASK
        + USE
        + """
    import multiprocessing
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=use) for _ in range(3)]
    for process in processes: process.start()
    for process in processes: process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    """
    )
    fresh.run(code)


def test_fork_while_another_thread_starts_the_library(gpu: None) -> None:
    code = (
        ASK
        + USE
        + """
    import threading
    from tensorplay.cuda._library import native, starter
    children = []
    def fork():
        child = os.fork()
        if not child:
            os._exit(0 if starter.lock.acquire(timeout=30) else 1)
        children.append(child)
    def holding():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    native.at_start.append(holding)
    use()
    assert [os.waitpid(child, 0)[1] for child in children] == [0]
    """
    )
    fresh.run(code, PYTHONWARNINGS="default")


def test_a_child_that_is_forked_amid_work_drops_tensors_and_works_on_the_host(gpu: None) -> None:
    """Threads of the parent hold locks at the fork, and the child has no threads that release them."""
    code = """
    import gc, threading
    kept, event = [tp.ones(1000, device="cuda") for _ in range(20)], tp.cuda.Event()
    event.record()
    done = False
    def work():
        while not done:
            with tp.cuda.stream(tp.cuda.Stream()):
                tp.ones(1000, device="cuda") + 1
                tp.cuda.empty_cache()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    ends = set()
    for _ in range(20):
        child = os.fork()
        if not child:
            signal.alarm(20)
            kept.clear()
            del event
            gc.collect()
            refuse(lambda: tp.ones(2, device="cuda"), tp.cuda.memory_stats, tp.cuda.empty_cache)
            os._exit(int(tp.ones(3).sum().item()))
        ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done = True
    for thread in threads: thread.join()
    print(ends)
    """
    assert fresh.run(REFUSE + code, PYTHONWARNINGS="default").strip().endswith("{3}")


def test_graphs_that_another_thread_of_the_parent_uses_are_refused_in_a_child(gpu: None) -> None:
    code = """
    import threading
    x, g = tp.ones(3, device="cuda"), tp.cuda.CUDAGraph()
    with tp.cuda.graph(g):
        for _ in range(1000): x.add_(1)  # that take a while to write
    done = False
    def work():
        while not done: g.debug_dump(os.devnull)
    thread = threading.Thread(target=work)
    thread.start()
    ends = set()
    for _ in range(10):
        child = os.fork()
        if not child:
            refuse(g.reset, g.pool, g.replay, g.capture_end, lambda: g.stage_and_launch([x], [x]),
                   lambda: g.debug_dump(os.devnull))
            del g
            os._exit(3)
        ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done = True
    thread.join()
    print(ends)
    """
    assert fresh.run(REFUSE + code, PYTHONWARNINGS="default").strip().endswith("{3}")


def test_init_in_a_child_of_a_process_that_used_a_device_is_one_clear_error(gpu: None) -> None:
    code = """
    tp.ones(3, device="cuda")
    child = os.fork()
    if not child:
        assert not tp.cuda.is_initialized()
        refuse(tp.cuda.init, tp.cuda.init, tp.cuda.synchronize, tp.cuda.Stream)
        assert not tp.cuda.is_initialized()
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), tp.cuda.is_initialized())
    """
    assert fresh.run(REFUSE + code, PYTHONWARNINGS="default") == "3 True\n"


def test_a_child_asks_for_nothing_under_a_lock_of_its_parent(emulated: None) -> None:
    code = """
    from tensorplay import cuda
    from tensorplay.testing import emulated
    x, side, g = tp.ones(3, device="cuda"), cuda.Stream(), cuda.CUDAGraph()
    with cuda.graph(g):
        x.add_(1)
        child = os.fork()
        if not child:
            with emulated.calls() as calls:
                refuse(lambda: x.record_stream(side), side.record_event, cuda.sanitizer.enable)
                cuda.manual_seed(4)  # of the capture it would be refused
                assert not cuda.is_current_stream_capturing()
            os._exit(sum(calls.values()))
        assert os.waitpid(child, 0)[1] == 0
    """
    fresh.run(REFUSE + code)
