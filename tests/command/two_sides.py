"""Two network namespaces, a device's and a server's, with a link between them that is as fast and as far
as a test wants: tc's token bucket for speed, a relay for distance."""
import os
import shutil
import subprocess
import sys

import case
import model_file as mf
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*args, check=True):
    return subprocess.run(args, check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lacking():
    """Why this cannot be had here, or None."""
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            return "%s is not installed (Debian: iproute2)" % tool
    name = "nori-probe-%d" % os.getpid()
    if run("ip", "netns", "add", name, check=False).returncode:
        return "no right to make network namespaces (root, CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    ok = run("ip", "-n", name, "link", "set", "lo", "up", check=False).returncode == 0
    ok = ok and run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate",
                    "10mbit", "burst", "16k", "latency", "100ms", check=False).returncode == 0
    run("ip", "netns", "del", name, check=False)
    return None if ok else "this kernel has no token bucket (sch_tbf) for tc"


def first():
    """What runs before a program whose times are judged, so that others on the machine stand back for it:
    at real-time priority where that may be had, else before them."""
    for before in (["chrt", "-f", "10"], ["nice", "-n", "-15"]):
        if shutil.which(before[0]) and run(*before, "true", check=False).returncode == 0:
            return before
    return []


class Child:
    """A helper script on the server's side that answers a line with a line."""

    def __init__(self, namespace, before, script, *args):
        self.p = subprocess.Popen(["ip", "netns", "exec", namespace, *before, sys.executable,
                                   os.path.join(HERE, script), *args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.first = self.p.stdout.readline().strip()

    def tell(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        assert self.p.stdout.readline(), line

    def close(self):
        self.p.stdin.close()
        self.p.wait(10)


class Sides:
    PORT = 9000

    def __init__(self, before=()):
        self.before = list(before)
        self.edge, self.cloud = ("nori-%s-%d" % (s, os.getpid()) for s in ("edge", "cloud"))
        self.url = "http://10.77.0.2:%d/v2/models/m" % self.PORT
        for name in (self.edge, self.cloud):
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", check=False)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.edge, "link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns",
            self.cloud)
        for i, name in enumerate((self.edge, self.cloud)):
            run("ip", "-n", name, "addr", "add", "10.77.0.%d/24" % (i + 1), "dev", "link0")
            run("ip", "-n", name, "link", "set", "link0", "up")
        self.double = Child(self.cloud, self.before, "v2_double.py")
        self.relay = Child(self.cloud, self.before, "delay_relay.py", str(self.PORT), self.double.first, "0")

    def close(self):
        self.relay.close()
        self.double.close()
        for name in (self.edge, self.cloud):
            run("ip", "netns", "del", name, check=False)

    def link(self, mbit, one_way_ms):
        for name in (self.edge, self.cloud):
            run("ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev", "link0", "root", "tbf", "rate",
                "%gmbit" % mbit, "burst", "16k", "latency", "400ms")
        self.relay.tell("%g" % one_way_ms)

    def up(self, yes):
        run("ip", "-n", self.cloud, "link", "set", "link0", "up" if yes else "down")

    def nori(self, *args, code=0, timeout=120):
        r = subprocess.run(["ip", "netns", "exec", self.edge, *self.before, case.NORI, *args], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        if code is not None and r.returncode != code:
            raise AssertionError("nori %s: %d\n%s\n%s" % (" ".join(args), r.returncode, r.stdout, r.stderr))
        return r


def negating(rows, layers):
    """y = -x by products with the unit matrix: exact, and as long as `layers` make it."""
    n = 128
    unit = [0.0] * (n * n)
    for i in range(n):
        unit[i * n + i] = 1.0

    def matrix(name, scale):
        return mf.tensor(name, mf.FLOAT, [n, n], struct.pack("<%df" % (n * n), *(scale * v for v in unit)))
    nodes = [mf.node("MatMul", ["x", "minus"], ["v0" if layers else "y"])]
    for i in range(layers):
        nodes.append(mf.node("MatMul", ["v%d" % i, "unit"], ["y" if i == layers - 1 else "v%d" % (i + 1)]))
    return mf.model(mf.Graph(nodes, [mf.value("x", mf.tensor_type(mf.FLOAT, [rows, n]))],
                             [mf.value("y", mf.tensor_type(mf.FLOAT, [rows, n]))],
                             [matrix("minus", -1.0), matrix("unit", 1.0)]))
