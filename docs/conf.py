"""Documentation: `make docs` builds it into build/docs, from a clone alone. The pages need no network either."""

import re
import sys
from pathlib import Path

import matplotlib
from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.errors import ExtensionError
from sphinx.util import logging

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

import rankrls  # noqa: E402

matplotlib.use("agg")

project = "rankrls"
author = copyright = "The rankrls developers"
version = release = rankrls.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
nitpicky = True  # a reference that leads nowhere is a warning, and a warning fails the build
default_role = "code"  # `alpha` in a docstring is code
highlight_language = "none"  # an indented block is a formula or a command

# ---------------------------------------------------------------- Markdown

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# ---------------------------------------------------------------- reference

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # autodoc shows them, with what they say

# ---------------------------------------------------------------- gallery


sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "reference_url": {},
    "min_reported_time": 0,
    "show_memory": False,
    "write_computation_times": False,
}

# ---------------------------------------------------------------- pages

html_theme = "pydata_sphinx_theme"
html_title = f"rankrls {version}"
html_static_path = ["_static"]
html_css_files = ["rankrls.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "rankrls"},
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"start": [], "comparison": [], "mathematics": [], "contributing": [], "references": []}
html_math_renderer = "mathml"


def show_math(translator, node):
    """Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""
    block = isinstance(node, nodes.math_block)
    try:
        mathml = latex2mathml.tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, node.astext(), location=node)
        mathml = ""
    translator.body.append(f'<div class="formula">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


def gather_measurements(app, page, source):
    """Measurements are beside the benchmarks in the repository, and on one page here."""
    if page == "measurements":
        source[0] += "\n".join(file.read_text() for file in sorted((ROOT / "benchmarks" / "results").glob("*.md")))
    else:
        source[0] = re.sub(r"\((?:\.\./)+benchmarks/results/\w+\.md\)", "(/measurements.md)", source[0])


def skip_routing(app, what, name, thing, skip, options):
    """scikit-learn gives every estimator set_fit_request and the like, which ours need not."""
    return True if re.fullmatch(r"set_\w+_request|set_output|get_metadata_routing", name) else skip


def refuse_network(app, exception):
    """Pages must show in full where there is no network."""
    if exception is None and app.builder.format == "html":
        for page in sorted(Path(app.outdir).rglob("*.html")):
            for tag in re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="https?://[^>]*>', page.read_text()):
                raise ExtensionError(f"{page} loads from the network: {tag}")


def first_paragraph(doctree):
    """The first paragraph below a page's title, in one line."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            return " ".join(paragraph.astext().split())
    return ""


def write_llms_txt(app, exception):
    """llms.txt: every page by title, address and first paragraph, for readers that are programs (llmstxt.org)."""
    if exception is not None or app.builder.format != "html":
        return
    lines = [f"# {project}", "", f"> {first_paragraph(app.env.get_doctree('index'))}", ""]
    sections = {"Pages": "index", "Guide": "guide", "Examples": "gallery/index", "More": "more"}
    for title, parent in sections.items():
        lines += [f"## {title}", ""]
        for page in dict.fromkeys(app.env.toctree_includes.get(parent, [])):
            about = first_paragraph(app.env.get_doctree(page))
            entry = f"- [{app.env.titles[page].astext()}]({page}.html)"
            lines.append(f"{entry}: {about}" if about else entry)
        lines.append("")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines))


def setup(app):
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
    app.connect("source-read", gather_measurements)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("build-finished", refuse_network)
    app.connect("build-finished", write_llms_txt)
