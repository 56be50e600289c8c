"""Help for the tests of programs. Other distributions add modules here, for their own devices."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

from .close import assert_close

__all__ = ["assert_close"]
