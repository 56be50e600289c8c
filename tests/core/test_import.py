"""What importing core does and does not do."""

from __future__ import annotations

from helpers.fresh import run

import tensorplay


def test_import_is_light() -> None:
    """NumPy and ml_dtypes, no thread of our own, no backend, nothing of the tests' and the network's modules."""
    run(
        """
        import sys, threading
        import numpy, ml_dtypes
        before, tasks = set(sys.modules), threading.active_count()
        import os
        native = len(os.listdir("/proc/self/task"))
        import tensorplay
        assert threading.active_count() == tasks
        assert len(os.listdir("/proc/self/task")) == native
        new = set(sys.modules) - before
        heavy = {"cffi", "ctypes.util", "asyncio", "safetensors", "socket", "ssl", "tqdm", "tensorplay.nn"}
        assert not new & heavy, new & heavy
        assert "tensorplay.cuda._backend" not in sys.modules
        """
    )


def test_using_the_host_imports_no_backend() -> None:
    run(
        """
        import sys
        import tensorplay
        x = tensorplay.rand(3) + 1
        repr(x), repr(tensorplay.device("cuda:1"))
        tensorplay.manual_seed(1)
        assert "tensorplay.cuda._backend" not in sys.modules
        """
    )


def test_all_names_exist() -> None:
    for name in tensorplay.__all__:
        assert getattr(tensorplay, name) is not None
    assert set(tensorplay.__all__) <= set(dir(tensorplay))


def test_parts_are_imported_when_they_are_named() -> None:
    run(
        """
        import sys
        import tensorplay
        assert "tensorplay.nn" not in sys.modules
        assert tensorplay.nn.Linear
        assert tensorplay.compiler.list_backends is not None
        try:
            tensorplay.nothing
        except AttributeError as error:
            assert "nothing" in str(error)
        else:
            raise AssertionError
        """
    )


def test_tensors_that_live_at_exit_are_silent() -> None:
    run(
        """
        import tensorplay, sys
        sys.modules["tensorplay.kept"] = tensorplay.ones(3)
        class Cycle: pass
        cycle = Cycle(); cycle.self = cycle; cycle.tensor = tensorplay.ones(3)
        kept = tensorplay.rand(3)
        """
    )


def test_a_part_that_is_not_installed_is_named() -> None:
    run(
        """
        import sys
        sys.modules["tensorplay.accelerator"] = None
        import tensorplay
        assert not hasattr(tensorplay, "accelerator")
        try:
            tensorplay.accelerator
        except AttributeError as error:
            assert "tensorplay-accelerator is not installed; type `python -m pip install" in str(error), error
        """
    )


def test_parts_of_testing_that_are_not_installed_are_named() -> None:
    run(
        """
        import sys
        for module in ("_orders", "emulated"):
            sys.modules[f"tensorplay.testing.{module}"] = None
        for name in ("emulated", "explore_orders", "SeedError"):
            try:
                exec(f"from tensorplay.testing import {name}")
            except ImportError as error:
                start = f"tensorplay.testing.{name}: tensorplay-cuda is not installed; type `python -m pip install"
                assert str(error).startswith(start), error
            else:
                raise AssertionError(name)
        """
    )
