"""Bodies whose calls fail in their turn, and bodies in a forked child: errors, and nothing stays behind."""

from __future__ import annotations

import gc

import pytest
from helpers import fresh
from helpers.captures import flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import AcceleratorError, InternalError, StateError, TensorPlayError
from tensorplay.testing import emulated as control

pytestmark = pytest.mark.usefixtures("gpu")


def test_a_child_that_is_forked_amid_a_body_gets_errors(gpu: None) -> None:
    code = """
        import os
        import tensorplay as tp
        from tensorplay import cuda
        g, p = cuda.CUDAGraph(), tp.full((), True, device="cuda")
        with cuda.graph(g), g.if_(p):
            p.fill_(True)
            child = os.fork()
            if not child:
                refused = 0
                for call in (
                    lambda: g.begin_capture_to_if_node(p), lambda: g.begin_capture_to_while_node(p),
                    g.else_().__enter__,
                    lambda: g.set_conditional_handle_for_current_node(p), cuda.CUDAGraph.get_currently_capturing_graph,
                    g.end_capture_to_conditional_node,
                ):
                    try:
                        call()
                    except tp.errors.TensorPlayError:
                        refused += 1
                os._exit(refused)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        g.replay()
    """
    assert fresh.run(code).strip() == "6"


@pytest.mark.parametrize("ending", ["", "raise KeyError", "cuda.current_stream().synchronize()"])
def test_a_process_that_ends_in_a_body_ends_as_always(ending: str) -> None:
    code = f"""
        import tensorplay as tp
        from tensorplay import cuda
        g, p, x = cuda.CUDAGraph(), tp.full((), True, device="cuda"), tp.zeros(9, device="cuda")
        g.capture_begin(stream=cuda.Stream())
        g.begin_capture_to_while_node(p)
        g.begin_capture_to_if_node(p)
        y = x + 1
        print("there")
        try:
            {ending or "pass"}
        except (KeyError, tp.AcceleratorError):
            print("failed")
    """
    assert fresh.run(code).split() == (["there", "failed"] if ending else ["there"])


@pytest.mark.parametrize("call", ["cudaGraphAddNode", "cudaGraphAddChildGraphNode", "cudaGraphConditionalHandleCreate"])
def test_work_behind_a_body_that_did_not_begin_does_not_run(emulated: None, call: str) -> None:
    g, p, x = cuda.CUDAGraph(), flag(), tp.zeros(3, device="cuda")
    g.capture_begin(stream=cuda.Stream())
    g.begin_capture_to_if_node(p)
    x.add_(1)
    with control.fail(call), pytest.raises(AcceleratorError, match=f"begin_capture_to_if_node: .*{call}"):
        g.begin_capture_to_if_node(p)
    x.add_(1)
    g.end_capture_to_conditional_node()
    x.add_(1)
    with pytest.raises(StateError, match=f"a body of a conditional node has failed: .*{call}"):
        g.capture_end()
    assert x.tolist() == [0, 0, 0]


def program() -> list[float]:
    """Bodies of every kind, in a capture of their own."""
    x, n, going = tp.zeros(4, device="cuda"), tp.full((), 0, device="cuda"), flag()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with g.while_(going):
            y = x + 1
            with g.if_(n == 1):
                x.copy_(y * 2)
            with g.else_():
                x.copy_(y)
            n.add_(1)
            tp.lt(n, 3, out=going)
        z = x + 0.5
    g.replay()
    return [*z.tolist(), n.item()]


def test_any_call_may_fail(emulated: None, with_else: None) -> None:
    assert program() == [5.5] * 4 + [3]
    with control.calls() as calls:
        program()
    counted, failures = dict(calls), 0
    before, stream = cuda.memory_allocated(), cuda.current_stream()
    gc.freeze()  # each capture collects garbage: now only its own
    del counted["cudaStreamEndCapture"]  # it ends captures also where it fails, which an injected failure does not
    del counted["cudaThreadExchangeStreamCaptureMode"]  # the thread would stay relaxed
    for name, count in counted.items():
        for nth in range(1, min(count, 8) + 1):
            with control.fail(name, nth):
                try:
                    assert program() == [5.5] * 4 + [3], (name, nth)
                except TensorPlayError as refusal:
                    assert not isinstance(refusal, InternalError), refusal
                    failures += 1
            gc.collect()
            assert cuda.memory_allocated() == before, (name, nth)
            assert cuda.current_stream() == stream, (name, nth)
            assert program() == [5.5] * 4 + [3], (name, nth)
    gc.unfreeze()
    assert failures > 30
