# /// script
# requires-python = ">=3.11,<3.15"
# dependencies = [
#   "matplotlib==3.11.2",
#   "numpy==2.4.6",
#   "pandas==2.3.3",
#   "plotly==7.1.0",
#   "pyarrow==24.0.0",
#   "scipy==1.17.1",
# ]
# ///
"""Runs one snippet of code: reads it with its inputs from standard input, and reports what it did.

Messages are frames: a length (32 bits, big-endian), then that many bytes. The first one is the request,
JSON; one frame per input follows. Each answer begins with a letter: o (standard output), p (a figure as
PNG), j (a figure of Plotly) or e (the end, JSON). Names of figures end at a line feed.

The platform checks every answer: the snippet runs in this process, and can send what it likes.
"""

import ast
import io
import json
import linecache
import os
import struct
import sys
import threading
import traceback
import types

FILE = "<snippet>"
PNG = b"\x89PNG\r\n\x1a\n"


class Reports:
    """Answers to the platform."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.lock = threading.Lock()

    def send(self, kind, body):
        message = kind + body
        message = struct.pack(">I", len(message)) + message
        with self.lock:
            while message:
                message = message[os.write(self.descriptor, message) :]


class Output(io.RawIOBase):
    """Standard output: its start is reported as it is written, its end with the snippet's end."""

    def __init__(self, reports, size):
        self.reports = reports
        self.size = size
        self.total = 0
        self.tail = bytearray()

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        length = len(data)
        first = data[: max(0, self.size - self.total)]
        if first:
            self.reports.send(b"o", first)
        self.total += length
        self.tail += data[len(first) :][-self.size :]
        del self.tail[: -self.size]
        return length


class Figures:
    """Figures of a snippet, at most so many and so large."""

    def __init__(self, reports, limits):
        self.reports = reports
        self.limits = limits
        self.count = 0
        self.bytes = 0
        self.omitted = []
        self.plotly = []

    def add(self, kind, name, render):
        if self.count >= self.limits["figures"]:
            self.omit(f"{name}: a snippet shows at most {self.limits['figures']} figures")
            return
        try:
            content = render()
        except MemoryError:
            self.omit(f"{name}: it needs too much memory; make it smaller")
            return
        except Exception as error:
            self.omit(f"{name}: it could not be drawn: {error}")
            return
        if len(content) > self.limits["figure_bytes"]:
            self.omit(f"{name}: it has {len(content) >> 10} KiB, and {self.limits['figure_bytes'] >> 10} KiB are the limit; make it smaller")
            return
        if self.bytes + len(content) > self.limits["all_figures_bytes"]:
            self.omit(f"{name}: all figures have more than {self.limits['all_figures_bytes'] >> 10} KiB; make fewer or smaller ones")
            return
        self.count += 1
        self.bytes += len(content)
        self.reports.send(kind, name.replace("\n", " ")[:60].encode() + b"\n" + content)

    def omit(self, reason):
        if len(self.omitted) < 5:
            self.omitted.append(reason[:300])

    def collect(self, namespace):
        """Adds all figures that the snippet has left."""
        self.add_matplotlib()
        self.add_plotly(namespace)
        if not self.count and not self.omitted:
            self.add_files()

    def add_matplotlib(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            label = str(figure.get_label() or f"Figure {number}")
            self.add(b"p", label, lambda: self.draw(figure))

    def draw(self, figure):
        width, height = figure.get_size_inches() * figure.dpi
        pixels = self.limits["pixels"]
        if not width * height <= pixels:
            raise ValueError(f"{width:.0f} by {height:.0f} pixels are more than {pixels} together")
        image = io.BytesIO()
        figure.savefig(image, format="png")
        return image.getvalue()

    def add_plotly(self, namespace):
        base = sys.modules.get("plotly.basedatatypes")
        if base is None:
            return
        for value in list(namespace.values()):
            self.show_plotly(value, base.BaseFigure)
        for number, figure in enumerate(self.plotly, 1):
            title = figure.layout.title.text or f"Plotly {number}"
            self.add(b"j", str(title), lambda: figure.to_json().encode())

    def show_plotly(self, value, kind):
        if isinstance(value, kind) and not any(value is other for other in self.plotly):
            self.plotly.append(value)
            return True
        return False

    def add_files(self):
        """Adds images that the snippet has saved and whose figures it has closed."""
        with os.scandir(".") as entries:
            files = [entry for entry in entries if entry.name.endswith(".png")]
        for entry in sorted(files, key=lambda entry: entry.name):
            if entry.is_file(follow_symlinks=False):
                self.add(b"p", entry.name, lambda: self.read(entry.name))

    def read(self, name):
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            content = file.read(self.limits["figure_bytes"] + 1)
        if not content.startswith(PNG):
            raise ValueError("it is no PNG image")
        return content


def read_exactly(size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = os.readv(0, [view])
        if count == 0:
            sys.exit("the request broke off")
        view = view[count:]
    return bytes(data)


def read_frame():
    return read_exactly(struct.unpack(">I", read_exactly(4))[0])


def read_inputs(declared):
    """Reads the inputs: tables as data frames, files as paths."""
    inputs = {}
    for item in declared:
        content = read_frame()
        if item["kind"] == "file":
            directory = os.path.join("inputs", item["name"])
            os.makedirs(directory)
            path = os.path.abspath(os.path.join(directory, item["file_name"]))
            with open(path, "wb") as file:
                file.write(content)
            inputs[item["name"]] = path
        else:
            inputs[item["name"]] = data_frame(item["columns"], json.loads(content))
    return inputs


def data_frame(columns, rows):
    import pandas

    series = {}
    for index, (name, kind) in enumerate(columns):
        unique, number = name, 2
        while unique in series:
            unique, number = f"{name}_{number}", number + 1
        series[unique] = column(pandas, kind, [row[index] for row in rows])
    return pandas.DataFrame(series)


def column(pandas, kind, values):
    has_null = None in values
    if kind == "integer":
        return pandas.array(values, dtype="Int64") if has_null else pandas.Series(values, dtype="int64")
    if kind == "float":
        # Not every number of a database is one in JSON: NaN and infinities are texts.
        numbers = [float("nan") if value is None else float(value) for value in values]
        return pandas.Series(numbers, dtype="float64")
    if kind == "boolean":
        return pandas.Series(values, dtype="boolean" if has_null else "bool")
    if kind in ("datetime", "date"):
        try:
            times = pandas.to_datetime(pandas.Series(values, dtype="object"), format="ISO8601", utc=kind == "datetime")
            return times
        except (ValueError, OverflowError):  # Years that pandas does not have.
            pass
    return pandas.Series(values, dtype="object")


def use_font_list():
    """Gives matplotlib the list of fonts that was made with the environment.

    Its directory must be writable, or matplotlib uses another one.
    """
    own = os.path.join(os.environ["TMPDIR"], "matplotlib")
    made = os.path.join(sys.prefix, "matplotlib")
    os.mkdir(own)
    for name in os.listdir(made):
        os.symlink(os.path.join(made, name), os.path.join(own, name))
    os.environ["MPLCONFIGDIR"] = own


def split(code):
    """Returns the snippet, and its last expression if it ends with one."""
    tree = ast.parse(code, FILE)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
        return compile(tree, FILE, "exec"), compile(last, FILE, "eval")
    return compile(tree, FILE, "exec"), None


def describe(value, size):
    """Returns the text of a value, without building an endless one."""
    import reprlib

    if isinstance(value, (str, bytes)):
        return repr(value[:size])
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        short = reprlib.Repr()
        short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = short.maxdict = 50
        short.maxstring = short.maxother = 500
        short.maxlevel = 6
        return short.repr(value)
    return repr(value)[: 4 * size]


def run(code, namespace, figures, size):
    """Runs the snippet; returns the text of its value and its traceback, if any."""
    try:
        body, last = split(code)
        exec(body, namespace)
        if last is None:
            return None, None
        value = eval(last, namespace)
        base = sys.modules.get("plotly.basedatatypes")
        if base is not None and isinstance(value, base.BaseFigure):
            figures.show_plotly(value, base.BaseFigure)
            return None, None
        return None if value is None else describe(value, size), None
    except SystemExit as exit:
        if exit.code in (None, 0):
            return None, None
        return None, f"SystemExit: {str(exit.code)[:size]}"
    except BaseException as error:
        return None, explain(error)


def explain(error):
    """Returns the traceback without the frames of this program."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return "".join(traceback.format_exception_only(error))
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != FILE:
        frames = frames.tb_next
    lines = traceback.format_exception(type(error), error, frames, limit=20)
    return "".join(line[:2000] for line in lines)


def main():
    descriptor = os.dup(1)
    # What other programs and libraries print.
    os.dup2(2, 1)
    reports = Reports(descriptor)
    request = json.loads(read_frame())
    limits = request["limits"]
    inputs = read_inputs(request["inputs"])
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)

    output = Output(reports, limits["output_part"])
    sys.stdout = io.TextIOWrapper(output, "utf-8", "backslashreplace", write_through=True)
    use_font_list()
    code = request["code"]
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    module = types.ModuleType("__main__")
    module.inputs = inputs
    sys.modules["__main__"] = module
    figures = Figures(reports, limits)
    if "plotly" in code:
        from plotly.basedatatypes import BaseFigure

        BaseFigure.show = lambda figure, *_, **__: figures.show_plotly(figure, BaseFigure) and None

    value, error = run(code, module.__dict__, figures, limits["output_part"])
    try:
        figures.collect(module.__dict__)
    except BaseException as failure:
        figures.omit(f"the figures could not be collected: {failure}")
    tail = bytes(output.tail).decode("utf-8", "replace")
    end = {
        "value": value,
        "error": error,
        "is_memory": error is not None and "MemoryError" in error.rstrip().rpartition("\n")[2],
        "tail": tail,
        "output_bytes": output.total,
        "omitted_figures": figures.omitted,
    }
    reports.send(b"e", json.dumps(end).encode())
    sys.stderr.flush()
    # Threads that are left are not waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
