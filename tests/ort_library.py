"""Where tests find ONNX Runtime's library: $NORI_ORT_LIBRARY, the folder $NORI_ORT_NODE where npm
installed onnxruntime-node, or what tools/get_ort.sh fetched."""
import glob
import os
import platform

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ABSENT = ("ONNX Runtime is not here: set NORI_ORT_LIBRARY to a libonnxruntime.so, or run "
          "tools/get_ort.sh")


def find():
    """The path of the library, or None."""
    given = os.environ.get("NORI_ORT_LIBRARY")
    if given:
        return given if os.path.exists(given) else None
    arch = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "none")
    folder = os.environ.get("NORI_ORT_NODE") or os.path.join(SOURCE, "build", "ort")
    found = glob.glob(os.path.join(folder, "node_modules", "onnxruntime-node", "bin", "*", "linux",
                                   arch, "libonnxruntime.so*"))
    return found[0] if found else None
