#!/usr/bin/env python3
"""nori run: PNG and JPEG files as inputs, how they become numbers, and what is no picture."""
import os
import re
import struct
import zlib

import case
import model_file as m

COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (51, 102, 204)]  # 2 x 2


def png(width, height, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(sum(pixels[y * width:(y + 1) * width], ()))
                    for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg():
    """8 x 8 pixels of (200, 100, 50)."""
    with open(os.path.join(case.SOURCE, "tests", "picture_data.h")) as f:
        return bytes.fromhex("".join(re.findall(
            '"([0-9a-f]+)"', re.search(r"char jpeg\[\] =(.*?);", f.read(), re.S).group(1))))


class Pictures(case.Case):
    def setUp(self):
        super().setUp()
        self.have = self.nori("doctor", "--json").json()["libraries"]
        if not self.have["libpng"]:
            self.skipTest("built without libpng: pictures are refused")
        self.first = self.file("first.onnx", m.one_node("Identity", [1, 3, 2, 2], [1, 3, 2, 2]))
        self.picture = self.file("p.png", png(2, 2, COLOURS))

    def test_stretched_pictures_are_told(self):
        wide = self.file("wide.png", png(4, 2, COLOURS + COLOURS))
        r = self.nori("run", self.first, wide)
        self.assertIn("4 x 2 pixels were stretched to 2 x 2", r.err)
        self.assertEqual(self.nori("run", self.first, wide, "--quiet").err, "")
        self.assertEqual(self.nori("run", self.first, self.picture).err, "")

    def values(self, *args):
        return self.nori("run", *args, "--json").json()["outputs"][0]["first"]

    def near(self, got, want, by=1e-6):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=by)

    def planes(self, order=(0, 1, 2)):
        return [c[i] / 255 for i in order for c in COLOURS]

    def test_layouts_and_order_of_channels(self):
        self.near(self.values(self.first, self.picture), self.planes())
        self.near(self.values(self.first, self.picture, "--bgr"), self.planes((2, 1, 0)))
        last = self.file("last.onnx", m.one_node("Identity", [1, 2, 2, 3], [1, 2, 2, 3]))
        self.near(self.values(last, self.picture), [v / 255 for c in COLOURS for v in c])
        gray = self.file("gray.onnx", m.one_node("Identity", [1, 1, 2, 2], [1, 1, 2, 2]))
        luma = [(0.299 * r + 0.587 * g + 0.114 * b) / 255 for r, g, b in COLOURS]
        self.near(self.values(gray, self.picture), luma)
        self.near(self.values(gray, self.picture, "--bgr"), luma)  # gray has no order

    def test_numbers(self):
        self.near(self.values(self.first, self.picture, "--range", "255"),
                  [255 * v for v in self.planes()], 1e-4)
        self.near(self.values(self.first, self.picture, "--mean", "0.5,0.25,0", "--std", "0.5"),
                  [(v - (0.5, 0.25, 0)[i // 4]) / 0.5 for i, v in enumerate(self.planes())])
        number = self.file("u8.onnx", m.one_node("Identity", [1, 3, 2, 2], [1, 3, 2, 2], elem=m.UINT8))
        self.assertEqual(self.values(number, self.picture), [c[i] for i in range(3) for c in COLOURS])
        self.nori("run", number, self.picture, "--mean", "0.5", code=2)

    def test_values_of_options(self):
        for option, value in (("--range", "7"), ("--range", "256"), ("--mean", "1,2"),
                              ("--mean", "1,2,3,4"), ("--mean", "1,2,3,"), ("--std", "0"),
                              ("--std", "1,0,1"), ("--mean", "nan"), ("--std", "x")):
            self.nori("run", self.first, self.picture, option, value, code=2)
            self.nori("run", self.first, option, value, code=2)  # nor without a picture
            self.nori("quantize", self.first, "--output", self.path("q.onnx"), "--random", "1",
                      option, value, code=2)

    def test_the_content_counts_not_the_name(self):
        self.near(self.values(self.first, self.file("p.jpg", png(2, 2, COLOURS))), self.planes())
        if self.have["libjpeg"]:
            for name in ("j.jpg", "j.JPEG", "j.png"):
                self.near(self.values(self.first, self.file(name, jpeg())),
                          [200 / 255] * 4 + [100 / 255] * 4 + [50 / 255] * 4, 3 / 255)

    def test_what_is_no_picture(self):
        os.mkdir(self.path("folder.png"))
        for path, words in ((self.path("absent.png"), "No such file"), (self.path("folder.png"), "folder"),
                            (self.file("empty.jpg", b""), "empty"),
                            (self.file("text.png", b"text"), "neither a PNG nor a JPEG")):
            r = self.nori("run", self.first, path, code=3)
            self.assertIn(words, r.err)
            self.assertIn(path, r.err)
        os.mkfifo(self.path("pipe.png"))
        os.mkfifo(self.path("pipe.raw"))
        for name in ("pipe.png", "pipe.raw"):  # not waited for
            self.assertIn("not a regular file", self.nori("run", self.first, self.path(name), code=3).err)
        flat = self.file("flat.onnx", m.one_node("Identity", [1, 12], [1, 12]))
        self.nori("run", flat, self.picture, code=2)

    def test_cut_pictures_are_refused(self):
        whole = png(2, 2, COLOURS)
        for n in range(8, len(whole) - 12, 5):
            self.nori("run", self.first, self.file("cut.png", whole[:n]), code=3)
        if self.have["libjpeg"]:
            whole = jpeg()
            for n in (3, 20, len(whole) // 2, len(whole) - 3):
                self.nori("run", self.first, self.file("cut.jpg", whole[:n]), code=3)
            self.nori("run", self.first, self.file("long.jpg", whole + b"more"))


if __name__ == "__main__":
    case.main()
