# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#   "autogluon.tabular[lightgbm]==1.6.3",
#   "lightgbm==4.7.0",
#   "numpy==2.4.6",
#   "pandas==2.3.3",
#   "pyarrow==24.0.0",
#   "scikit-learn==1.9.1",
#   "scipy==1.17.1",
# ]
# ///
"""Entry point for tabular models: `tabular.py train|predict RUN_DIRECTORY`."""

import sys
from pathlib import Path

# Also works when Python runs isolated (`-I`) and does not search the script's directory.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from labdata_trainer import entry

if __name__ == "__main__":
    entry.main(sys.argv[1:])
