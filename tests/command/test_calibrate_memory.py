#!/usr/bin/env python3
"""Calibration takes no more memory for 10,000 samples than for 10."""
import os
import random
import subprocess
import sys

import case
import npy_file as n

MODEL = os.path.join(case.DIGITS, "digits.onnx")


class Memory(case.Case):
    def peak(self, samples, path):
        code = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]).returncode; "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r)")
        out = self.path("c%d.ncal" % samples)
        r = subprocess.run([sys.executable, "-c", code, case.NORI, "calibrate", MODEL, "--data", path,
                            "--samples", str(samples), "--output", out, "--quiet"],
                           stdout=subprocess.PIPE, timeout=280)
        self.assertEqual(r.returncode, 0)
        self.assertGreater(os.path.getsize(out), 1000)
        return int(r.stdout)

    def test_peak(self):
        r = random.Random(3)
        pixels = [r.randrange(256) for _ in range(784 * 64)]
        few = self.file("few.npy", n.npy("|u1", [10, 28, 28], pixels[:7840]))
        many = self.file("many.npy", n.npy("|u1", [10000, 28, 28], (pixels * 157)[:7840000]))
        ten, thousands = self.peak(10, few), self.peak(10000, many)
        print("10 samples: %d kB, 10,000: %d kB" % (ten, thousands))
        self.assertLessEqual(thousands, ten * 1.10)


if __name__ == "__main__":
    case.main()
