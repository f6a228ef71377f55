"""Tries what an artifact must not do, and reports what it could."""

import glob, os, socket, urllib.request
done = []
def attempt(name, action):
    try:
        if action():
            done.append(name)
    except BaseException:
        pass
def connects(host, port):
    socket.create_connection((host, port), 2).close()
    return True
attempt("platform", lambda: urllib.request.urlopen("{platform}/wine.json", timeout=5).read())
attempt("database", lambda: connects("127.0.0.1", {database}))
attempt("internet", lambda: connects("1.1.1.1", 443))
attempt("names", lambda: socket.getaddrinfo("example.org", 443))
attempt("secrets", lambda: open("{secret}").read())
attempt("workspaces", lambda: os.listdir(os.path.dirname(os.path.dirname(os.environ["HOME"]))))
attempt("environment", lambda: open("/proc/{server}/environ").read())
attempt("memory", lambda: open("/proc/{server}/mem", "rb"))
attempt("signal", lambda: os.kill({server}, 0) is None)
attempt("passwords", lambda: open("/etc/shadow").read())
attempt("packages", lambda: open(os.__file__ + ".new", "w"))
attempt("environments", lambda: open(os.path.join(os.environ["VIRTUAL_ENV"], "new"), "w"))
attempt("credentials", lambda: [name for name in os.environ if "KEY" in name or "URL" in name])
raise RuntimeError("could: " + ", ".join(done))
