"""The directive ``torch``: the names of a module, or a class, of torch: what is the same, different and absent here."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from torch_names import compare


class Torch(SphinxDirective):
    """``.. torch:: torch.nn``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table's nodes."""
        (section,) = self.arguments
        home = section.replace("torch", "tensorplay", 1)
        text = [".. list-table::", "   :widths: 12 58 30", "   :header-rows: 1", ""]
        text += ["   * - here", "     - names", "     - how, or what to write instead"]
        for (kind, remark), names in compare(section).items():
            shown = [f"``{name}``" if kind == "absent" else f":py:obj:`{name} <{home}.{name}>`" for name in names]
            text += [f"   * - {kind}", f"     - {', '.join(shown)}", f"     - {remark}"]
        return self.parse_text_to_nodes("\n".join(text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("torch", Torch)
    return {"parallel_read_safe": True}
