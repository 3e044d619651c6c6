"""Writes .npy files and .npz archives without numpy."""
import io
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B", "|i1": "b", "|b1": "?",
         ">f4": "f", ">i8": "q"}


def npy(descr, shape, values, fortran=False):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        descr, fortran, "".join("%d, " % d for d in shape))
    head = head.encode() + b" " * ((-11 - len(head)) % 64) + b"\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
            + struct.pack("%s%d%s" % (">" if descr[0] == ">" else "<", len(values), CODES[descr]), *values))


def read_npy(data):
    """(descr, shape, values)"""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    n = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + n].decode(), {})  # our own output
    assert not head["fortran_order"] and (10 + n) % 64 == 0
    size = struct.calcsize(CODES[head["descr"]])
    body = data[10 + n:]
    return head["descr"], head["shape"], list(
        struct.unpack("%s%d%s" % (">" if head["descr"][0] == ">" else "<", len(body) // size,
                                  CODES[head["descr"]]), body))


def npz(arrays, compress=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as z:
        for name, data in arrays.items():
            # As numpy does: the local header is of the zip64 form whatever the size.
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                f.write(data)
    return out.getvalue()
