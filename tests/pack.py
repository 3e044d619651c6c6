"""What the scripts that run packs of models through the command have in common."""
import array
import gzip
import json
import os
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

# Exit codes of the command.
AGREES, DIFFERS, USAGE, BAD, REFUSED, TIMED_OUT = 0, 1, 2, 3, 4, -1

NPY_CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "<u4": "I", "<u8": "Q",
             "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H"}
PB_CODES = {1: "f", 11: "d", 6: "i", 7: "q", 12: "I", 13: "Q", 3: "b", 2: "B", 5: "h", 4: "H"}


def run(command, timeout):
    """(exit code or TIMED_OUT, standard output, first line of what was said, seconds)."""
    start = time.monotonic()
    try:
        r = subprocess.run(command, capture_output=True, text=True, errors="replace",
                           timeout=timeout)
    except subprocess.TimeoutExpired:
        return TIMED_OUT, "", "timed out after %d s" % timeout, time.monotonic() - start
    said = (r.stderr + r.stdout).strip()
    return r.returncode, r.stdout, said.split("\n")[0][:300], time.monotonic() - start


def in_turn(tasks, jobs, what):
    """Runs functions, jobs at a time; yields results as they come, telling how far it is."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(t) for t in tasks]
        for done, f in enumerate(as_completed(waiting), 1):
            if sys.stderr.isatty():
                sys.stderr.write("\r%d of %d %s " % (done, len(waiting), what))
                sys.stderr.flush()
            yield f.result()
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 60 + "\r")


def read_npy(path):
    """(shape, numbers) of a .npy file of plain numbers in row-major order."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:6] != b"\x93NUMPY":
        raise ValueError("%s is no .npy file" % path)
    wide = data[6] > 1
    size, = struct.unpack_from("<I" if wide else "<H", data, 8)
    begin = 12 if wide else 10
    # The header is a Python literal by definition of the format.
    import ast
    head = ast.literal_eval(data[begin:begin + size].decode("latin-1"))
    if head["fortran_order"] or head["descr"] not in NPY_CODES:
        raise ValueError("%s: type %s is not read here" % (path, head["descr"]))
    numbers = array.array(NPY_CODES[head["descr"]])
    numbers.frombytes(data[begin + size:])
    return tuple(head["shape"]), numbers


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7


def read_pb(path):
    """(shape, numbers) of a TensorProto with raw_data, perhaps gzipped."""
    if not os.path.exists(path):
        path += ".gz"
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        data = f.read()
    dims, kind, raw, at = [], 0, b"", 0
    while at < len(data):
        key, at = varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
            if field == 1:
                dims.append(value)
            elif field == 2:
                kind = value
        elif wire == 2:
            size, at = varint(data, at)
            if field == 1:  # packed
                end = at + size
                while at < end:
                    value, at = varint(data, at)
                    dims.append(value)
                continue
            if field == 9:
                raw = data[at:at + size]
            at += size
        else:
            at += 4 if wire == 5 else 8
    numbers = array.array(PB_CODES[kind])
    numbers.frombytes(raw)
    return tuple(dims), numbers


def near(got, want, atol, rtol):
    return abs(got - want) <= atol + rtol * abs(want)


def read_json(path):
    with open(path) as f:
        return json.load(f)


def in_turn_kept(cases, jobs, one, path):
    """Yields one(case), a list of results, for every case, jobs at a time. With a path, what is done stands
    in that file, and is taken from there when the run is started again after it was stopped."""
    done = {}
    if path and os.path.exists(path):
        with open(path) as f:
            for line in f:
                if line.endswith("\n"):  # a line that was cut off counts for nothing
                    case, results = json.loads(line)
                    done[case] = [tuple(r) for r in results]
    for case in cases:
        if case in done:
            yield done[case]
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(one, c): c for c in cases if c not in done}
        for f in as_completed(waiting):
            if path:
                with open(path, "a") as out:
                    out.write(json.dumps([waiting[f], f.result()]) + "\n")
            yield f.result()
