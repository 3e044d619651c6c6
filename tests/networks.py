"""What the scripts that run the given networks know of them: which are large, what is not asked of which
provider and why, and who runs what (`nori inspect --providers`)."""
import json
import subprocess

import ort_library

# More than some 0.2 billion multiply-adds: a second or more on the reference provider.
LARGE = ("candy_style_op8", "dnsmos_sig_bak_ovr", "light_densenet121", "magika_v3_3",
         "mobilenetv2_int8_plant", "obs_tbefn", "obs_uretinex", "obs_zero_dce",
         "super_resolution_10", "yolov8n_int8_lamri", "yolov8n_int8_mtrya",
         "yolov8n_seg_int8_dashcam")

# Networks whose expected values are off by more than their tolerance, so that a provider that
# computes more exactly agrees only this far: (atol, limit of the relative RMS difference).
# candy_style_op8: its InstanceNormalization sums planes of 640,000 elements, and the expected
# values come from float32 sums in eight lanes. Recomputed operator by operator in PyTorch, values up
# to 255: float64 is 1.663 (RMS 0.0380, relative 0.00024) from the expected values, float32 with
# PyTorch's pairwise sums 1.670, float32 with sums in eight lanes 0.059; the reference provider is
# 0.001 from float64, 1.663 from the expected values. So the index's atol of 0.61, which speaks of
# moves of one unit in the last place, is taken on top of 1.67; the RMS limit is four times that.
EXACT = {"candy_style_op8": ("2.28", "0.001")}
COMPUTE_EXACTLY = ("reference", "opencl", "cuda")

# On processors without VNNI, ONNX Runtime multiplies uint8 by int8 with 16-bit sums that saturate,
# which is not what ONNX says: networks whose weights are large enough to show.
SATURATES = ("ece_v2_int8", "ece_v5_int8", "factorio_mnist_quant", "tatva_nano_quant", "tinycnn_esp_int8")

# Storage of float16 has 11 bits: a relative RMS difference, in place of the index's numbers.
HALF_RMS = "0.02"
# Networks with values on the device that float16 does not have. Sums of integer products, as floats
# before their scale, go beyond 65504; logarithms and quotients of guarded zeros, and scores of 1e-5,
# go below its smallest normal number, 6e-5.
TOO_LARGE = ("chiikawa_cls_int8", "deimv2_atto_int8", "edgeopt_mbv2_int8", "mobilenetv2_int8_arm")
TOO_SMALL = ("basic_pitch_nmp", "oww_melspectrogram", "silero_vad_v2_piper", "yunet_s_640")


def first(provider):
    """The name of the first of a list of providers: "opencl:storage=fp16,cpu" -> "opencl"."""
    return provider.split(":")[0].split(",")[0]


def half(provider):
    return "storage=fp16" in provider


def excused(provider):
    """{name: why} of the networks that are not asked of a provider."""
    found = {}
    if half(provider):
        found.update((n, "float16 has no such large numbers") for n in TOO_LARGE)
        found.update((n, "float16 has no such small numbers") for n in TOO_SMALL)
    if first(provider) == "ort":
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            if "vnni" not in f.read():
                found.update((n, "ONNX Runtime saturates on this processor") for n in SATURATES)
    return found


def absent(nori, provider):
    """Why a provider cannot be had here, or None. A library that a list names by itself (lib=) is not
    asked for."""
    name = first(provider)
    if name == "ort" and not ort_library.find():
        return ort_library.ABSENT
    if name in ("cpu", "reference") or "lib=" in provider or "/" in provider:
        return None
    said = subprocess.run([nori, "doctor", "--json"], capture_output=True, text=True, check=True).stdout
    state = [p for p in json.loads(said)["providers"] if p["name"] == name]
    if not state:
        return "%s: built without it" % name
    return None if state[0]["ready"] else "%s: %s" % (name, state[0]["reason"])


class Partition:
    """Who runs what of a network, as `nori inspect --providers` says before anything runs."""

    def __init__(self, nori, model, provider, more=()):
        said = subprocess.run([nori, "inspect", model, "--providers", provider, "--json", *more],
                              capture_output=True, text=True, check=False)
        if said.returncode != 0:
            raise ValueError((said.stderr + said.stdout).strip().split("\n")[0])
        answer = json.loads(said.stdout)
        self.nodes = {}  # by provider
        for node in answer["nodes"]:
            self.nodes[node["provider"]] = self.nodes.get(node["provider"], 0) + 1
        self.parts = {}
        self.in_parts = 0
        for part in answer["parts"]:
            if part["given"]:
                self.parts[part["provider"]] = self.parts.get(part["provider"], 0) + 1
                self.in_parts += part["nodes"]
        self.all = len(answer["nodes"])

    def __str__(self):
        rows = sorted(self.nodes.items(), key=lambda r: -r[1])
        return ", ".join("%s %d%s" % (name, count, " in %d part%s" % (
            self.parts[name], "s" if self.parts[name] > 1 else "") if name in self.parts else "")
            for name, count in rows) or "nothing to run"
