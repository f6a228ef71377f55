"""Client of the labdata platform.

import labdata_client as labdata

lab = labdata.connect()  # LABDATA_BASE_URL, LABDATA_API_KEY
with lab.execution("Import", revert_on_error=True) as run:
    run.write({"sample": [{"name": "A1"}]})
"""

from ._async._execution import AsyncExecution
from ._async._lab import AsyncLab, connect_async
from ._environment import PlatformRun
from ._results import Curve, Curves, Predictions, Preview, Record, Report, Rows, WriteResult
from ._sync._execution import Execution
from ._sync._lab import Lab, connect
from .errors import (
    ApiError,
    BadRequest,
    Busy,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    InvalidArgument,
    LabdataError,
    LocalFileError,
    LocalFileNotFound,
    MissingLibrary,
    NotFound,
    Problem,
    Unauthorized,
    WriteRefused,
)

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "AsyncExecution",
    "AsyncLab",
    "BadRequest",
    "Busy",
    "Conflict",
    "ConnectionFailed",
    "Curve",
    "Curves",
    "Execution",
    "Forbidden",
    "Invalid",
    "InvalidArgument",
    "Lab",
    "LabdataError",
    "LocalFileError",
    "LocalFileNotFound",
    "MissingLibrary",
    "NotFound",
    "PlatformRun",
    "Predictions",
    "Preview",
    "Problem",
    "Record",
    "Report",
    "Rows",
    "Unauthorized",
    "WriteRefused",
    "WriteResult",
    "connect",
    "connect_async",
]
