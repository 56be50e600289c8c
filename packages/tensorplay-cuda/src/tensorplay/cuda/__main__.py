"""``python -m tensorplay.cuda``: where a C program finds the header, the library and its kernels.

docs/guide/c-abi.md says how they are used.
"""

from __future__ import annotations

import argparse
import sys

from tensorplay._output import say
from tensorplay.errors import BackendUnavailableError

from . import _select


def main(arguments: list[str] | None = None) -> int:
    """Prints what was asked for, a line each.

    Returns
    -------
    int
        1, with the reason on the error stream, where it is not there.
    """
    parser = argparse.ArgumentParser(prog="python -m tensorplay.cuda", description=__doc__)
    parser.add_argument("--include", action="store_true", help="the folder of tensorplay.h and tensorplay_codes.h")
    parser.add_argument("--library", action="store_true", help="the library")
    parser.add_argument("--kernels", action="store_true", help="the folder that tp_kernels_set_path takes")
    parser.add_argument(
        "--variant", choices=_select.VARIANTS, help="of this variant, rather than of the one that serves this machine"
    )
    options = parser.parse_args(arguments)
    if not (options.include or options.library or options.kernels):
        parser.error("expected --include, --library or --kernels")
    try:
        say("\n".join(_places(options)))
    except BackendUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _places(options: argparse.Namespace) -> list[str]:
    from . import _native

    places = [_native.FOLDER / "include"] if options.include else []
    if options.library or options.kernels:
        named = options.variant
        choice = _select.built((named,), f"--variant is {named}") if named else _select.choose()
        if choice.variant is None:
            raise BackendUnavailableError(f"tensorplay.cuda: {choice.fault}")
        places += [_native.library_of(choice.variant)] if options.library else []
        places += [_native.kernels_of(choice.variant)] if options.kernels else []
    return [str(place) for place in places]


if __name__ == "__main__":
    sys.exit(main())
