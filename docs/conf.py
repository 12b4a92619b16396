"""The site: `make docs` writes it to docs/_build/html.

Pages are Markdown that reads well in the repository too. What only the site needs is done here:
links to example scripts lead to their pages in the gallery, public names to the reference.
"""

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import unshuffle

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
import _llms  # noqa: E402

# Examples would show photos of this folder, which may not be passed on.
os.environ.pop("UNSHUFFLE_DATA", None)

project = "unshuffle"
author = "The unshuffle developers"
copyright = "the unshuffle developers"
version = release = unshuffle.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "papers/results", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
default_role = "code"
highlight_language = "none"  # blocks without a language are commands and files, not Python

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template lists them
# Names that several methods share are explained once, in the docstring of the class.
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "unshuffle"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {  # pages that stand alone
    page: [] for page in ("index", "tutorial", "changelog", "contributing", "gallery/index")
}
html_theme_options = {
    "logo": {"text": "unshuffle"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": ["theme-version"],
}

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples"),
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("unshuffle",),
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "thumbnail_size": (400, 280),
    "within_subsection_order": "_gallery_order.ByTopic",  # a name, so that Sphinx can keep it
}

# Pages of the site for files that the repository has elsewhere.
_ELSEWHERE = {
    "README.md": "/index.md",
    "CHANGELOG.md": "/changelog.md",
    "CONTRIBUTING.md": "/contributing.md",
}
# Public names of the reference, by how pages call them.
_PUBLIC = re.findall(r"^   (unshuffle\.[\w.]+)$", (DOCS / "reference.md").read_text("utf-8"), re.M)
_BY_NAME = {name: full for full in _PUBLIC for name in (full, full.rpartition(".")[2])}
_BY_NAME |= {full.removeprefix("unshuffle."): full for full in _PUBLIC}
del _BY_NAME["center"]  # on the pages, a parameter of SetNormalizer
# Members that scikit-learn adds to its estimators, with texts that lead to its own site.
_SCIKIT_LEARN = re.compile(r"set_\w+_request|set_output|get_metadata_routing")


def lead_within_the_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to example scripts and to files at the root into links to pages of the site."""

    def target(link: re.Match[str]) -> str:
        path = link[1]
        if path.endswith(".py"):
            return f"](/gallery/{Path(path).stem}.rst)"
        return f"]({_ELSEWHERE[path]})"

    if not page.startswith(("gallery/", "generated/")):
        files = "|".join(map(re.escape, _ELSEWHERE))
        source[0] = re.sub(rf"\]\((?:\.\./)+(examples/plot_\w+\.py|{files})\)", target, source[0])


def lead_to_reference(app: Sphinx, tree: nodes.document) -> None:
    """Make links of the public names and the examples that stand in backticks on a page."""
    page = app.env.docname
    if page == "reference" or page.startswith("generated/"):
        return
    for code in list(tree.findall(nodes.literal)):
        if isinstance(code.parent, nodes.reference | nodes.title):
            continue
        text = code.astext()
        if full := _BY_NAME.get(re.sub(r"\([^()]*\)$", "", text)):
            target = {"refdomain": "py", "reftype": "obj", "reftarget": full}
        elif example := re.fullmatch(r"(?:examples/)?(plot_\w+)\.py", text):
            target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/gallery/{example[1]}"}
        else:
            continue
        link = addnodes.pending_xref(refdoc=page, refexplicit=True, **target)
        code.replace_self(link)
        link += code


def skip_scikit_learn(
    app: Sphinx, what: str, name: str, value: object, skip: bool, options: Any
) -> bool | None:
    """Leave out the methods for metadata and containers of output."""
    return True if _SCIKIT_LEARN.fullmatch(name) else None


def write_llms(app: Sphinx, error: Exception | None) -> None:
    """Add llms.txt and llms-full.txt."""
    if error is None and app.builder.name == "html":
        _llms.write(Path(app.outdir))


def check_gallery(app: Sphinx, error: Exception | None) -> None:
    """Refuse examples without a picture."""
    shown = {path.stem for path in (DOCS / "gallery" / "images").glob("sphx_glr_plot_*.png")}
    names = [path.stem for path in (DOCS.parent / "examples").glob("plot_*.py")]
    missing = [name for name in names if f"sphx_glr_{name}_001" not in shown]
    runs = str(app.config.plot_gallery) not in ("0", "False")
    if error is None and runs and missing:
        raise ExtensionError(f"These examples draw no picture: {', '.join(missing)}.")


def setup(app: Sphinx) -> None:
    """Connect all of these."""
    # Examples show warnings of ours on purpose; those of a build tool would hide them.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    app.connect("source-read", lead_within_the_site)
    app.connect("doctree-read", lead_to_reference)
    app.connect("autodoc-skip-member", skip_scikit_learn)
    app.connect("build-finished", check_gallery)
    app.connect("build-finished", write_llms)
