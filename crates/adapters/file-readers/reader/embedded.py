import importlib.abc
import importlib.machinery
import sys


class EmbeddedPackage(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the modules of the program from the texts in this file."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in SOURCES:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, self, origin=self.file_name(fullname), is_package=self.is_package(fullname)
        )

    def is_package(self, fullname):
        return any(name.startswith(fullname + ".") for name in SOURCES)

    def get_source(self, fullname):
        return SOURCES[fullname]

    def exec_module(self, module):
        name = module.__spec__.name
        # Python shows the lines of a file of this name in tracebacks, with the help of `get_source`.
        module.__file__ = self.file_name(name)
        exec(compile(SOURCES[name], module.__file__, "exec"), module.__dict__)

    @staticmethod
    def file_name(fullname):
        return "<embedded>/" + fullname.replace(".", "/") + ".py"


sys.meta_path.insert(0, EmbeddedPackage())

from labdata_reader import program

if __name__ == "__main__":
    program.main()
