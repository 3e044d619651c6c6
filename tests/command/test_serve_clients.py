#!/usr/bin/env python3
"""Clients that others wrote, against nori serve: Triton's Python client, where a Python has it
(NORI_TRITON_CLIENT: the folder that tritonclient/ lies in)."""
import os
import shutil
import subprocess
import sys

import case
import model_file as mf
import server

CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "triton_client_calls.py")
PATH = {**os.environ, "PYTHONPATH": os.environ.get("NORI_TRITON_CLIENT", "")}


def python():
    """One that has the client."""
    for name in "/usr/bin/python3", sys.executable:
        done = subprocess.run([name, "-c", "import tritonclient.http"], env=PATH, capture_output=True)
        if done.returncode == 0:
            return name
    return None


class Clients(server.ServeCase):
    def test_triton(self):
        shutil.copy(os.path.join(case.DIGITS, "digits.onnx"), self.path("digits.onnx"))
        self.file("t.onnx", mf.one_node("Identity", ["n"], ["n"], mf.STRING))
        s = self.serve(self.folder.name)
        done = subprocess.run([python(), CALLS, "%s:%d" % (s.host, s.port)], env=PATH, timeout=120,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "all calls as expected\n"), done.stderr)


if __name__ == "__main__":
    if not python():
        print("no Python has tritonclient.http: clients of others are not tested (NORI_TRITON_CLIENT)")
        sys.exit(77)
    case.main()
