#!/usr/bin/env python3
"""Runs a folder of broken or foreign models: each must be refused, or run, as this table says, with a
message that names what is wrong.

    run_negative.py --nori build/release/nori --models DIR

DIR/why.tsv names the models, DIR/NAME/model.onnx holds them. One that is not in the table, or is in
the table but not in the folder, is a failure."""
import argparse
import csv
import os
import sys

import pack

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--models", required=True)
args = p.parse_args()

# name: (exit code of `nori run`, words its message must hold). Refused: every unknown operator is
# named once, with domain, operator set, count and first node.
EXPECTED = {
    "deeploy_icct_int": (pack.REFUSED, [
        "5 operators cannot run", "RequantShift, default domain, opset 10: no such operator",
        "16 nodes", "__QL_REPLACED__INTEGERIZE_BN2D_UNSIGNED_ACT_PASS_0_RequantShift",
        "iLayerNorm", "ITAMax", "iGELU", "IntegerMean"]),
    # Comparing floats with == means the same at every operator set: it runs.
    "ezkl_nanogpt": (pack.AGREES, []),
    "ezkl_random_forest": (pack.BAD, [
        "/MatMul (MatMul)", "input 0 (A) of MatMul is int8; it takes float32, int32, int64", "nori check"]),
    "hls4ml_tiny_unet": (pack.REFUSED, [
        "Quant, domain qonnx.custom_op.general: the domain is used but not imported", "113 nodes",
        "Conv, domain qonnx.custom_op.channels_last", "40 nodes", "MaxPool", "4 nodes"]),
    "microllama_fp32_deeploy": (pack.REFUSED, [
        "RMSNorm, default domain, opset 10: no such operator", "17 nodes", "RMSNormalization",
        "opset 23"]),
    "mlperf_ad_deeploy": (pack.REFUSED, [
        "RequantShift, default domain, opset 10: no such operator", "10 nodes", "RequantShift_24"]),
    "mlperf_ic_deeploy": (pack.REFUSED, [
        "RequantShift, default domain, opset 10: no such operator", "14 nodes", "RequantShift_16"]),
    "mlperf_kws_deeploy": (pack.REFUSED, [
        "RequantShift, default domain, opset 10: no such operator", "10 nodes", "RequantShift_17"]),
    "mlperf_vww_deeploy": (pack.REFUSED, [
        "RequantShift, default domain, opset 10: no such operator", "28 nodes", "RequantShift_43"]),
    "nieeeb_mlops_quant": (pack.REFUSED, [
        "ActivationPOTQuantizer, domain mct_quantizers, opset 1", "6 nodes",
        "WeightsSymmetricQuantizer", "5 nodes", "the domain is not known"]),
    "qonnx_tfc_1w1a": (pack.REFUSED, [
        "BipolarQuant, domain onnx.brevitas: the domain is used but not imported", "8 nodes"]),
    # No operator set and IR version 1: operator set 1, where Add has axis and broadcast.
    "subpixel_sr": (pack.AGREES, []),
    "superres_prepost_op18": (pack.REFUSED, [
        "DecodeImage, domain com.microsoft.extensions, opset 1", "EncodeImage",
        "2 operators cannot run", "the domain is not known"]),
    "waveformer_deeploy": (pack.REFUSED, [
        "4 operators cannot run", "RequantShift, domain PACTOps, opset 1: the domain is not known",
        "182 nodes", "IntegerMean", "10 nodes", "IntegerDiv", "9 nodes", "iGELU"]),
}
# Runs, but is not valid: what `nori check` must say. A wrong type is its matter, too.
CHECKED = {
    "ezkl_nanogpt": ["/h.0/attn/Equal (Equal)", "int32, int64, bool", "found float32", "float32 needs opset 11"],
    "ezkl_random_forest": ["MatMul takes", "found int8", "no version of MatMul takes int8"],
}


def whole(command):
    import subprocess
    r = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    return r.returncode, r.stderr + r.stdout


def main():
    with open(os.path.join(args.models, "why.tsv")) as f:
        names = [r["name"] for r in csv.DictReader(f, delimiter="\t")]
    wrong = ["%s: only in one of why.tsv and this table" % n for n in set(names) ^ set(EXPECTED)]
    for name in sorted(set(names) & set(EXPECTED)):
        path = os.path.join(args.models, name, "model.onnx")
        want, words = EXPECTED[name]
        code, text = whole([args.nori, "run", path])
        if code != want:
            wrong.append("%s: exit code %d, expected %d: %s" % (name, code, want, text[:200]))
        wrong += ["%s: the message lacks \"%s\"" % (name, w) for w in words if w not in text]
        if want == pack.AGREES and "nan" in text:
            wrong.append("%s: NaN in the output" % name)
        if name in CHECKED:
            code, text = whole([args.nori, "check", path])
            wrong += ["%s: check exits with 0" % name] if code == 0 else []
            wrong += ["%s: check lacks \"%s\"" % (name, w) for w in CHECKED[name] if w not in text]
    print("\n".join(wrong + ["%d models, %d complaints" % (len(names), len(wrong))]))
    return 1 if wrong or not names else 0


sys.exit(main())
