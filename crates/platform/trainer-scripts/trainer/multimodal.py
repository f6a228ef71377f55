# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#   "autogluon.multimodal==1.6.3",
#   "lightning==2.6.6",
#   "numpy==2.4.6",
#   "pandas==2.3.3",
#   "pillow==12.3.0",
#   "pyarrow==24.0.0",
#   "scikit-learn==1.9.1",
#   "scipy==1.17.1",
#   "timm==1.0.3",
#   "torch==2.13.0",
#   "torchvision==0.28.0",
#   "transformers==5.14.1",
# ]
# ///
"""Entry point for models of images: `multimodal.py train|predict RUN_DIRECTORY`."""

import sys
from pathlib import Path

# Also works when Python runs isolated (`-I`) and does not search the script's directory.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from labdata_trainer import entry

if __name__ == "__main__":
    entry.main(sys.argv[1:])
