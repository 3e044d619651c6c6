"""Calls a server through Triton's own Python client: triton_client_calls.py HOST:PORT, with a server of
the models digits (examples/digits) and t (texts, Identity). Run by test_serve_clients.py, in a Python
that has tritonclient.http and what it needs (Debian: python3-geventhttpclient, python3-numpy,
python3-rapidjson)."""
import sys

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
assert client.get_server_metadata()["name"] == "nori"
assert client.get_model_metadata("digits")["inputs"][0]["datatype"] == "FP32"
assert client.get_model_config("digits")["name"] == "digits"
assert {m["name"] for m in client.get_model_repository_index()} == {"digits", "t"}

picture = np.random.default_rng(1).random((2, 1, 28, 28), dtype=np.float32)
results = []
for as_binary in True, False:
    x = triton.InferInput("image", [2, 1, 28, 28], "FP32")
    x.set_data_from_numpy(picture, binary_data=as_binary)
    wanted = [triton.InferRequestedOutput("logits", binary_data=as_binary)]
    result = client.infer("digits", [x], outputs=wanted, request_id="7", timeout=30000000)
    assert result.get_response()["id"] == "7"
    results.append(result.as_numpy("logits"))
assert results[0].shape == (2, 10) and (results[0] == results[1]).all()

x = triton.InferInput("image", [2, 1, 28, 28], "FP32")
x.set_data_from_numpy(picture)
calls = [client.async_infer("digits", [x]) for _ in range(5)]
for call in calls:
    assert (call.get_result().as_numpy("logits") == results[0]).all()

texts = np.array([b"a", "\u00e9".encode(), b""], dtype=np.object_)
for as_binary in True, False:
    t = triton.InferInput("x", [3], "BYTES")
    t.set_data_from_numpy(texts, binary_data=as_binary)
    got = client.infer("t", [t], outputs=[triton.InferRequestedOutput("y", binary_data=as_binary)])
    assert [v if isinstance(v, bytes) else v.encode() for v in got.as_numpy("y")] == list(texts)

stats = client.get_inference_statistics("digits")["model_stats"][0]
assert stats["inference_stats"]["success"]["count"] == 7 and stats["inference_count"] == 14
x = triton.InferInput("image", [1, 28, 28], "FP32")
x.set_data_from_numpy(picture[0])
try:
    client.infer("digits", [x])
except InferenceServerException as e:
    assert "[1,28,28]" in e.message() and "[batch,1,28,28]" in e.message(), e.message()
else:
    raise AssertionError("a wrong shape was taken")
client.unload_model("t")
assert not client.is_model_ready("t")
client.load_model("t")
assert client.is_model_ready("t")
print("all calls as expected")
