"""The documentation site: ``tox run -e docs`` builds it into ``dist/docs``."""

import sys
from pathlib import Path

import tensorplay

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "TensorPlay"
version = release = tensorplay.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "public", "torch_table"]
html_theme = "furo"
html_title = f"{project} {version}"

# Names in single backticks are links where there is such a name, else code.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
autodoc_default_options = {"members": True, "undoc-members": True}
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # a field of a class that is a name of other classes too

# Every heading can be linked to, as on the pages of a repository.
myst_heading_anchors = 4
