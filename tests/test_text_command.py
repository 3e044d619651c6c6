#!/usr/bin/env python3
"""nori inspect --text, nori build, and what inspect says of axes that no input has.

    test_text_command.py NORI DIGITS.onnx"""
import os
import subprocess
import sys
import tempfile

nori, digits = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TEXT = """<ir_version: 8, opset_import: ["": 13]>
tiny (float[%s,4] x) => (float[batch,4] y) <float[4] w = {1, 2.5, -3, 0}> {
    t = Mul(x, w)
    y = Relu(t)
}
"""


def run(*words, code=0, stdin=None):
    r = subprocess.run([nori, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    out, err = r.stdout.decode(), r.stderr.decode()
    if r.returncode != code:
        sys.exit("nori %s: exit code %d, %d was expected\n%s%s" % (" ".join(words), r.returncode, code, out, err))
    return out, err


def expect(text, *parts):
    for part in parts:
        if part not in text:
            sys.exit("expected %r in:\n%s" % (part, text))


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)

    def write(name, text):
        with open(name, "w") as f:
            f.write(text)

    # There and back, by a file and by a pipe.
    write("a.txt", TEXT % "batch")
    expect(run("build", "a.txt", "-o", "a.onnx")[0], "a.onnx was written: 2 nodes")
    expect(run("build", "a.txt", "-o", "a.onnx")[0], "%d B; next" % os.path.getsize("a.onnx"))
    text = run("inspect", "a.onnx", "--text")[0]
    expect(text, "float[batch,4] x", "w = {1, 2.5, -3, 0}", "t = Mul(x, w)")
    write("b.txt", text)
    run("build", "b.txt", "--output", "b.onnx", "--quiet")
    with open("a.onnx", "rb") as a, open("b.onnx", "rb") as b:
        assert a.read() == b.read()
    run("build", "/dev/stdin", "-o", "c.onnx", stdin=text.encode())
    expect(run("build", "a.txt", "-o", "a.onnx", "--json")[0], '"nodes": 2')

    # A large model: what is left out is said, and comes back from the model itself.
    text = run("inspect", digits, "--text")[0]
    expect(text, "# The content of 7 tensors", "--weights", "{...}")
    write("d.txt", text)
    expect(run("build", "d.txt", "-o", "d.onnx", code=4)[1], "d.txt", "line 12, column", "head.weight",
           "--weights FILE")
    assert not os.path.exists("d.onnx")
    run("build", "d.txt", "-o", "d.onnx", "--weights", digits)
    run("validate", "d.onnx", "--against", digits, "--provider", "reference", "--level", "0", "--atol", "0",
        "--rtol", "0")
    expect(run("build", "d.txt", "-o", "e.onnx", "--weights", "a.onnx", code=4)[1], "the weights given lack it")
    write("e.txt", run("inspect", digits, "--text", "--inline", "all")[0])
    run("build", "e.txt", "-o", "e.onnx")
    run("validate", "e.onnx", "--against", digits, "--provider", "reference", "--level", "0", "--atol", "0",
        "--rtol", "0")

    # Mistakes.
    write("bad.txt", (TEXT % "batch").replace("Relu(t)", "Relu(t"))
    expect(run("build", "bad.txt", "-o", "x.onnx", code=3)[1], "bad.txt", "line 5, column 1",
           "',' or ')' of a node's inputs was expected, found \"}\"")
    write("empty.txt", "")
    expect(run("build", "empty.txt", "-o", "x.onnx", code=3)[1], "line 1, column 1", "the text ends here")
    expect(run("build", "a.onnx", "-o", "x.onnx", code=3)[1], "line 1")
    run("build", "nowhere.txt", "-o", "x.onnx", code=3)
    run("build", "a.txt", code=2)
    run("build", "a.txt", "-o", "nowhere/x.onnx", code=3)
    run("inspect", "a.onnx", "--text", "--nodes", code=2)
    run("inspect", "a.onnx", "--inline", "all", code=2)
    run("inspect", "a.onnx", "--text", "--inline", "some", code=2)
    assert not os.path.exists("x.onnx")

    # An exporter was told of a dynamic axis by a name no input has: only the output has it.
    write("f.txt", TEXT % "1")
    run("build", "f.txt", "-o", "f.onnx", "--quiet")
    out, err = run("inspect", "f.onnx")
    expect(err, "output y is declared float32[batch,4]", 'no input has an axis "batch"')
    expect(run("check", "f.onnx")[0], "axis 0 of output y is named batch", "dynamic_axes keys")
    out, err = run("inspect", "a.onnx")
    assert "no input has" not in err
print("texts, weights, mistakes and names of axes: right")
