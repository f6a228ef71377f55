"""Lists the tests of what runs in the sandbox, from cargo's messages: directory, program and filters by line."""

import json
import os
import sys

# By package: the modules whose tests depend on the isolation of the machine.
MODULES = {
    "labdata-sandbox": "",
    "labdata-local-runner": "isolation:: limits:: leftovers:: trainings::",
    "labdata-predictor": "",
    "labdata-python-sandbox": "",
    "labdata-api": "models::predict_trained models::trainings agent::growth_curves",
}

found = set()
for line in sys.stdin:
    message = json.loads(line)
    if message["reason"] != "compiler-artifact" or not message["executable"]:
        continue
    directory = os.path.dirname(message["manifest_path"])
    with open(message["manifest_path"], encoding="utf-8") as manifest:
        package = manifest.read().split('name = "', 1)[1].split('"', 1)[0]
    if message["profile"]["test"] and message["target"]["name"] == "it" and package in MODULES:
        found.add(package)
        print(directory, message["executable"], MODULES[package])
if found != set(MODULES):
    sys.exit(f"no tests of {set(MODULES) - found}")
