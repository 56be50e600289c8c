"""The only recipe that compiles C: the wheel's build hook and the C tests call it.

``python libtensorplay/build.py --cuda 12.9,13.0,emulated --out FOLDER`` writes into FOLDER what
``tensorplay.cuda._native`` loads, the libraries, the kernel images and the cffi module, and the headers for C programs.
docs/design/build.md says why it is made so.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import toolkit
from toolkit import BuildError, Toolkit

HERE = Path(__file__).resolve().parent
JOBS = 2

SANITIZERS = ("address", "undefined", "thread")
WARNINGS = ("-Wall", "-Wextra")
# A function that no header declares is never right: newer compilers refuse it, older ones only warn.
C_FLAGS = (
    "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-DTP_BUILD", *WARNINGS,
    "-Werror=implicit-function-declaration",
)  # fmt: skip
# The emulated device runs the kernels' own sources. errno and floating-point traps, which no kernel reads,
# would keep the compiler from making vectors of them.
KERNEL_FLAGS = (
    "-std=c++17", "-D_GNU_SOURCE", "-O3", "-fPIC", "-fvisibility=hidden", "-DTP_BUILD", *WARNINGS,
    "-fno-math-errno", "-fno-trapping-math", "-fno-exceptions", "-fno-rtti",
    # What a kernel reads and uses under one condition looks uninitialized to the compiler once it is inlined.
    "-Wno-maybe-uninitialized",
)  # fmt: skip


def _compiler(variable: str, default: str) -> list[str]:
    """The compiler command of $CC or $CXX, else the default; a sentence when there is none."""
    command = shlex.split(os.environ.get(variable) or default)
    if shutil.which(command[0]) is None:
        raise BuildError(
            f"no {command[0]} on PATH: the build needs a C and a C++ compiler (install {default}, or set {variable})"
        )
    return command


def _cc() -> list[str]:
    return _compiler("CC", "gcc")


def _cxx() -> list[str]:
    return _compiler("CXX", "g++")


def _run(command: Sequence[str | Path], what: str) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        line = shlex.join(map(str, command))
        raise BuildError(f"{what}: exit status {done.returncode}\n{line}\n{done.stdout}{done.stderr}")


def _sanitizer_flags(sanitizer: str | None) -> list[str]:
    if sanitizer is None:
        return []
    if sanitizer not in SANITIZERS:
        raise BuildError(f"sanitizer: got {sanitizer!r}, expected one of {', '.join(SANITIZERS)}")
    return [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]


def variant_of(target: str) -> str:
    """The variant that a target of ``TENSORPLAY_BUILD_CUDA`` makes: "13.0" makes "cuda13"."""
    return target if target == "emulated" else f"cuda{target.partition('.')[0]}"


def include_flags(kit: Toolkit, emulated: bool) -> list[str | Path]:
    """Ours first, CUDA's as system headers, so that their warnings are not ours."""
    ours = [HERE / "include", HERE / "src", HERE / "kernels"]
    system = list(kit.include)
    if emulated:
        ours.append(HERE / "emulated" / "include")
        system.append(toolkit.cccl_include())
    flags: list[str | Path] = []
    for folder in ours:
        flags += ["-I", folder]
    for folder in system:
        flags += ["-isystem", folder]
    return flags


def compile_objects(
    variant: str, kit: Toolkit, out: Path, sanitizer: str | None = None, strict: bool = False
) -> list[Path]:
    """Compiles every source of a variant; the object files, ready to link.

    strict: a warning is an error. For our tests only: another compiler, which warns of more, still builds a wheel.
    """
    emulated = variant == "emulated"
    flags = [*include_flags(kit, emulated), f'-DTP_VARIANT="{variant}"', *(["-Werror"] if strict else [])]
    checks = _sanitizer_flags(sanitizer)
    sources = sorted(HERE.glob("src/**/*.c"))
    commands: list[tuple[str | Path, ...]] = []
    if emulated:
        # The host's version of the runtime stands below src/.
        sources += sorted(HERE.glob("emulated/*.c"))
        # The kernels of the GPU, which register themselves while the library is loaded. The largest first.
        kernels = sorted(HERE.glob("kernels/*.cu"), key=lambda path: -path.stat().st_size)
        commands += [(*_cxx(), *KERNEL_FLAGS, *checks, *flags, "-x", "c++", "-c", path) for path in kernels]
    commands += [(*_cc(), *C_FLAGS, *checks, *flags, "-c", path) for path in sources]
    out.mkdir(parents=True, exist_ok=True)

    def compile_one(command: tuple[str | Path, ...]) -> Path:
        path = Path(command[-1])
        target = out / ("_".join(path.relative_to(HERE).parts) + ".o")
        _run([*command, "-o", target], f"{path.relative_to(HERE)} does not compile for {variant}")
        return target

    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(compile_one, commands))


def link_flags(variant: str, kit: Toolkit, scratch: Path) -> list[str]:
    """What the library of this variant is linked with; `scratch` is for what has to be fetched."""
    if variant == "emulated":
        return ["-static-libstdc++", "-static-libgcc", "-lpthread", "-ldl", "-lm"]
    folder = toolkit.static_runtime(kit, scratch)
    return [f"-L{folder}", f"-l:{toolkit.STATIC}", "-lpthread", "-lrt", "-ldl", "-lm"]


def build_library(target: str, kit: Toolkit, out: Path) -> Path:
    """Builds libtensorplay_<variant>.so, which exports tp_* and nothing else."""
    variant = variant_of(target)
    library = out / f"libtensorplay_{variant}.so"
    with tempfile.TemporaryDirectory() as folder:
        objects = compile_objects(variant, kit, Path(folder))
        exports = Path(folder) / "exports.map"
        exports.write_text("{ global: tp_[!_]*; local: *; };\n")
        linker = _cxx() if variant == "emulated" else _cc()
        _run(
            [*linker, "-shared", "-s", "-o", library, *objects, f"-Wl,--version-script={exports}",
             "-Wl,--no-undefined", "-Wl,--gc-sections", *link_flags(variant, kit, Path(folder))],
            f"{library.name} does not link",
        )  # fmt: skip
    if variant != "emulated":
        library.with_suffix(".LICENSE.txt").write_text(toolkit.licence(kit.version))
    return library


def build_program(
    source: Path, kit: Toolkit, objects: Path, kernels: Path, out: Path, sanitizer: str | None = None
) -> None:
    """Builds a C test against the emulated variant's objects, so that it reaches tp__ functions too."""
    _run(
        [*_cc(), *C_FLAGS, "-Werror", *_sanitizer_flags(sanitizer), *include_flags(kit, True),
         f'-DTP_TEST_KERNELS="{kernels}"', "-c", source, "-o", f"{out}.o"],
        f"{source.name} does not compile",
    )  # fmt: skip
    _run(
        [*_cxx(), *_sanitizer_flags(sanitizer), f"{out}.o", *sorted(objects.glob("*.o")),
         "-o", out, "-lpthread", "-ldl", "-lm"],
        f"{source.name} does not link",
    )  # fmt: skip


def build_emulated_images(out: Path) -> None:
    """The emulated device finds kernels by name in its own program: an image only says which family it is."""
    from images import pack

    out.mkdir(parents=True, exist_ok=True)
    for source in sorted((HERE / "kernels").glob("*.cu")):
        (out / f"{source.stem}.sm_90.z").write_bytes(pack(f"emulated:{source.stem}\n".encode()))


def build_binding(out: Path) -> None:
    """Builds the cffi module against Python's limited API, so that one file serves Python 3.10 and later."""
    from binding import write_source

    python = Path(sysconfig.get_path("include"))
    if not (python / "Python.h").is_file():
        raise BuildError(f"Python.h is not in {python}: install Python's headers (python3-dev)")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "_tensorplay.c"
        write_source(source)
        _run(
            [*_cc(), "-O2", "-fPIC", "-shared", "-s", "-fvisibility=hidden",
             "-DPy_LIMITED_API=0x030a0000", "-I", python, "-I", HERE / "binding", "-I", HERE / "include",
             "-I", HERE / "emulated" / "include", source, "-o", out / "_tensorplay.abi3.so", "-ldl", "-lpthread"],
            "the cffi module does not compile",
        )  # fmt: skip


def build_kernels(versions: list[str], out: Path) -> None:
    """Compiles every kernel file for the GPU, with the half types of the newest toolkit."""
    from images import build_images

    build_images(HERE / "kernels", toolkit.find_toolkit(versions[-1]).include[0], out)


def build(targets: list[str], out: Path, kernels: bool = True) -> None:
    """Builds everything that ``tensorplay.cuda._native`` loads, and the headers, into the folder `out`."""
    from headers import write_headers

    _cc(), _cxx()  # a missing one is said before anything is emptied or compiled
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_headers(out / "include")
    versions = [target for target in targets if target != "emulated"]
    # The longest first: the kernels of the GPU keep one worker busy while the other makes the rest.
    steps: list[Callable[[], object]] = []
    if versions and kernels:
        steps.append(partial(build_kernels, versions, out / "kernels"))
    if "emulated" in targets:
        kit = toolkit.find_toolkit(toolkit.headers_of_emulated(targets))
        steps.append(partial(build_library, "emulated", kit, out))
        steps.append(partial(build_emulated_images, out / "kernels_emulated"))
    steps += [partial(build_library, version, toolkit.find_toolkit(version), out) for version in versions]
    steps.append(partial(build_binding, out))
    with ThreadPoolExecutor(JOBS) as pool:
        running = [pool.submit(step) for step in steps]
        for done in as_completed(running):
            if done.exception():
                pool.shutdown(wait=False, cancel_futures=True)
            done.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", default=os.environ.get("TENSORPLAY_BUILD_CUDA", toolkit.DEFAULT_BUILD))
    parser.add_argument("--kernels", choices=("0", "1"), default=os.environ.get("TENSORPLAY_KERNELS", "1"))
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", type=Path, help="build into this folder, which is emptied first")
    action.add_argument("--requirements", action="store_true", help="print the wheels that the build needs")
    arguments = parser.parse_args()
    kernels = arguments.kernels == "1"
    try:
        targets = toolkit.parse_targets(arguments.cuda)
        if arguments.requirements:
            print("\n".join(toolkit.requirements(targets, kernels)))
        else:
            build(targets, arguments.out.resolve(), kernels)
    except BuildError as error:
        print(f"libtensorplay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
