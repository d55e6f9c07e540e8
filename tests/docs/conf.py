# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sphinx's configuration of the documentation site; tests/docs/site.py starts it."""

project = "railops.rdma"
html_title = "railops.rdma"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
exclude_patterns = ["**/example-plan/fabric/[!r]*"]
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
linkcheck_timeout = 30
linkcheck_anchors = False
