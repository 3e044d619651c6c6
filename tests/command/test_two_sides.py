#!/usr/bin/env python3
"""Edge and cloud as two processes in network namespaces of their own: an outage loses no answer, nothing
leaves where nothing may, a heavy tail loses at p99. `settings` as an argument: decisions over 50 settings
of link, load and model against what was best when measured (`settings 11 20`: only these of the 50)."""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import case
import two_sides

sides = None


class TwoSides(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = self.write("m.onnx", two_sides.negating(64, 500))  # tens of milliseconds here
        self.edge = self.write("e.json", '{"nori_profile": 1, "side": "device", "steady": 200}')
        self.cloud = self.write("c.json", '{"nori_profile": 1, "side": "cloud", "service": 12}')
        sides.double.tell("service 0.005")
        sides.double.tell("load 0")
        sides.link(100, 2)

    def write(self, name, data):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def test_outage(self):
        """Five seconds without a network, in the middle of twelve."""
        log = os.path.join(self.folder.name, "log")
        begin = time.monotonic()
        gone = threading.Timer(3, sides.up, (False,))
        back = threading.Timer(8, sides.up, (True,))
        gone.start()
        back.start()
        j = json.loads(sides.nori("route", self.model, "--cloud", sides.url, "--seconds", "14", "--rate", "10/s",
                                  "--edge-profile", self.edge, "--cloud-profile", self.cloud, "--threads", "1",
                                  "--log", log, "--json").stdout)
        gone.join()
        back.join()
        print("outage: %d calls, %d answered, %d right, longest %.0f ms, %.1f s in all" % (
            j["calls"], j["answered"], j["agree"], j["all"]["most_ms"], time.monotonic() - begin))
        self.assertEqual(j["calls"], 140)
        self.assertEqual((j["answered"], j["agree"]), (140, 140))
        each = j["each"]
        during = [c for c in each if 4 < c["at_s"] < 7.5]
        self.assertEqual({c["place"] for c in during}, {"edge"})
        self.assertIn("cloud", {c["place"] for c in each if c["at_s"] < 2.5})
        with open(log, encoding="utf-8") as f:
            what = [json.loads(line) for line in f]
        # while it was gone: the calls that found out, and probes
        self.assertLess(sum(1 for x in what if x["what"] == "infer" and not x["answered"]), 12)

    def capture(self, *args):
        """What IP packets left the device's namespace while it routed: count and bytes."""
        program = (
            "import json, socket, subprocess, sys, threading, time\n"
            "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)\n"
            "s.settimeout(0.2)\n"
            "seen, done = [0, 0], []\n"
            "def watch():\n"
            "    while True:\n"
            "        try:\n"
            "            data, where = s.recvfrom(65536)\n"
            "        except socket.timeout:\n"
            "            if done:\n"
            "                return\n"
            "            continue\n"
            "        if where[1] in (0x0800, 0x86dd) and where[2] == socket.PACKET_OUTGOING:\n"
            "            seen[0] += 1\n"
            "            seen[1] += len(data)\n"
            "t = threading.Thread(target=watch)\n"
            "t.start()\n"
            "r = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)\n"
            "time.sleep(0.3)\n"
            "done.append(1)\n"
            "t.join()\n"
            "print(json.dumps([seen, json.loads(r.stdout)]))\n")
        out = subprocess.run(["ip", "netns", "exec", sides.edge, *sides.before, sys.executable, "-c", program,
                              case.NORI, "route", self.model, "--cloud", sides.url, "--calls", "100", "--threads",
                              "1", "--edge-profile", self.edge, "--cloud-profile", self.cloud, "--json", *args],
                             stdout=subprocess.PIPE, check=True, timeout=120).stdout
        return json.loads(out)

    def test_nothing_leaves(self):
        (packets, size), j = self.capture("--raw-stays", "--features-stay")
        print("privacy: %d packets left for %d calls" % (packets, j["calls"]))
        self.assertEqual((packets, size), (0, 0))
        self.assertEqual((j["edge"]["answers"], j["sent_bytes"]), (100, 0))
        (packets, size), j = self.capture("--hedge", "2s")  # the capture does see what leaves
        self.assertGreater(packets, 0)
        self.assertGreater(size, j["sent_bytes"])
        self.assertGreater(j["sent_bytes"], 100 * 64 * 128 * 4 // 2)

    def test_heavy_tail(self):
        """Mean 15, p99 400 ms against an edge that always takes 60, to be done in 100 ms."""
        sides.double.tell("tail 1")
        sides.link(1000, 0)
        out = os.path.join(self.folder.name, "tail.json")
        sides.nori("profile", self.model, "--cloud", sides.url, "--runs", "200", "--output", out)
        args = ("place", "--edge", "60ms", "--cloud-profile", out, "--json")
        mean = json.loads(sides.nori(*args).stdout)
        late = json.loads(sides.nori(*args, "--deadline", "100ms").stdout)
        cloud = late["options"]["cloud"]
        print("heavy tail: cloud mean %.1f ms, p99 %.0f ms, %.1f %% in time" % (
            cloud["mean_ms"], cloud["p99_ms"], 100 * cloud["within_deadline"]))
        self.assertEqual(mean["place"], "cloud")
        self.assertEqual(late["place"], "edge")
        self.assertGreater(cloud["p99_ms"], 300)


class Settings(unittest.TestCase):
    """What `nori place` decides from profiles against the side that was faster when calls were made.

    Models are as long as makes this device about `ratio` times as slow as the server, so that each side
    wins in half of the settings, on a fast machine as on a slow one. Each setting is seen in rounds: the
    device is profiled and then called, the server is profiled and then called. What counts is the middle
    of the rounds, for what was decided as for what calls took: a moment in which the machine did something
    else spoils one round."""
    ROUNDS = 3
    which = range(1, 51)

    def test_settings(self):
        draw = random.Random(7)
        misses, wins = [], {"edge": 0, "cloud": 0}
        with tempfile.TemporaryDirectory() as folder:
            layer_ms = {rows: self.layer(folder, rows) for rows in (8, 64, 192)}
            for n in range(1, 51):
                row = self.draw(draw, layer_ms)
                if n not in self.which:
                    continue
                self.measure(folder, row)
                cost = row[row["place"]] / row[row["best"]] - 1
                wins[row["best"]] += 1
                if row["place"] != row["best"]:
                    misses.append(cost)
                print("%2d  %5g Mbit/s %4g ms %4d kB %4d layers, server %4.1f ms load %.1f: %-5s "
                      "edge %7.2f cloud %7.2f ms, thought %7.2f %7.2f%s" % (
                          n, row["mbit"], row["one_way"], row["kb"], row["layers"], row["service"],
                          row["load"], row["place"], row["edge"], row["cloud"], row["thought"]["edge"],
                          row["thought"]["cloud"],
                          "" if row["place"] == row["best"] else "  costs %.1f %%" % (100 * cost)), flush=True)
        print("%d of %d as measured; the others cost %s; the edge was best in %d" % (
            len(self.which) - len(misses), len(self.which),
            ", ".join("%.1f %%" % (100 * c) for c in misses) or "nothing", wins["edge"]))
        self.assertLessEqual(len(misses), 2)
        self.assertLess(max(misses, default=0), 0.05)
        if len(self.which) == 50:
            self.assertGreater(min(wins.values()), 10, "always the same place would be right as often")

    @staticmethod
    def draw(draw, layer_ms):
        row = {"mbit": draw.choice([8, 20, 50, 100, 400]), "one_way": draw.choice([0, 1, 3, 8]),
               "rows": draw.choice([8, 64, 192]), "service": draw.choice([1, 4, 10]),
               "load": draw.choice([0, 0, 0.4])}
        ratio = draw.choice([0.2, 0.5, 0.8, 1.25, 2, 4])
        row["kb"] = row["rows"] * 128 * 4 // 1024
        cloud = (2 * 8.192 * row["kb"] / row["mbit"] + 2 * row["one_way"] + row["service"] *
                 (1 + row["load"] / 3) + 0.5)
        edge = min(ratio * cloud, 300)  # milliseconds: more only takes long
        row["layers"] = max(1, round(edge / layer_ms[row["rows"]]))
        row["calls"] = max(9, min(21, round(1000 / max(cloud, edge))))
        return row

    @staticmethod
    def layer(folder, rows):
        """What a layer takes here, in milliseconds."""
        model, out = os.path.join(folder, "l.onnx"), os.path.join(folder, "l.json")
        with open(model, "wb") as f:
            f.write(two_sides.negating(rows, 400))
        sides.nori("profile", model, "--threads", "1", "--runs", "20", "--minutes", "0", "--callers", "none",
                   "--output", out)
        with open(out, encoding="utf-8") as f:
            return json.load(f)["steady"]["mean_ms"] / 400

    def measure(self, folder, row):
        model = os.path.join(folder, "m.onnx")
        with open(model, "wb") as f:
            f.write(two_sides.negating(row["rows"], row["layers"]))
        sides.double.tell("service %g" % (row["service"] / 1e3))
        sides.double.tell("load %g" % (row["load"] / row["service"] * 1e3))
        sides.link(row["mbit"], row["one_way"])
        rounds = [self.round(folder, model, row["calls"]) for _ in range(self.ROUNDS)]
        row["place"] = statistics.mode(r["place"] for r in rounds)
        row["thought"] = {side: statistics.median(r["thought"][side] for r in rounds) for side in ("edge", "cloud")}
        for side in ("edge", "cloud"):
            row[side] = statistics.median(r[side] for r in rounds)
        row["best"] = "edge" if row["edge"] < row["cloud"] else "cloud"

    @staticmethod
    def round(folder, model, runs):
        """One look at both sides: means of calls, what was thought before, and where calls would go."""
        profiles = {side: os.path.join(folder, side + ".json") for side in ("edge", "cloud")}
        how = {"edge": ("--runs", str(runs), "--minutes", "0", "--callers", "none"),
               "cloud": ("--cloud", sides.url, "--runs", str(runs))}
        one, seen = ("--threads", "1"), {}
        for side in ("edge", "cloud"):
            sides.nori("profile", model, *one, *how[side], "--output", profiles[side])
            calls = json.loads(sides.nori("route", model, *one, "--cloud", sides.url, "--only", side, "--calls",
                                          str(runs + 1), "--json").stdout)
            seen[side] = statistics.mean(c["ms"] for c in calls["each"][1:])  # the first one connects
        j = json.loads(sides.nori("place", model, *one, "--edge-profile", profiles["edge"], "--cloud-profile",
                                  profiles["cloud"], "--json").stdout)
        seen["thought"] = {side: j["options"][side]["mean_ms"] for side in ("edge", "cloud")}
        seen["place"] = j["place"] if j["place"] != "split" else min(
            ("edge", "cloud"), key=lambda side: seen["thought"][side])
        return seen


def main():
    global sides
    why = two_sides.lacking()
    if not why:
        done = subprocess.run([case.NORI, "doctor"], stdout=subprocess.PIPE, text=True, check=False).stdout
        for name in ("libcurl", "jansson"):
            if ("%-10s found" % name) not in done:
                why = "nori was built without %s" % name
    if why:
        print("skipped: " + why)
        sys.exit(77)
    settings = sys.argv[1:2] == ["settings"]
    if settings and len(sys.argv) == 4:
        Settings.which = range(int(sys.argv[2]), int(sys.argv[3]) + 1)
    sides = two_sides.Sides(two_sides.first())
    try:
        name = "Settings" if settings else "TwoSides"
        result = unittest.main(argv=[sys.argv[0], name], exit=False).result
    finally:
        sides.close()
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
