"""Makes matplotlib's list of fonts, in the directory of the environment, where snippets find it."""

import os
import sys

os.environ["MPLCONFIGDIR"] = os.path.join(sys.prefix, "matplotlib")

import matplotlib.font_manager  # noqa: E402, F401
