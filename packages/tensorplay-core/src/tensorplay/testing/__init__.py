"""Help for the tests of programs. Other distributions add modules here, for their own devices."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
