#!/usr/bin/env python3
"""Exports small networks by torch, for run_torch.py: `export_torch.py DIR NAME` writes NAME.onnx and NAME.npz
(in_0 ..., out_0 ...), `export_torch.py --list` names them: ARCHITECTURE_opN for operator sets 9 to 16, with
"_dyn" where axes are dynamic. Those are exported at one size, and the data is of another. mlp_op13_wrong
has a dynamic axis for an input there is not."""
import sys

OPSETS = range(9, 17)


def networks():
    """name: (module, inputs at export, inputs of another size, dynamic axes, lowest operator set)"""
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(20, 32), nn.ELU(), nn.LayerNorm(32), nn.Linear(32, 16),
                                        nn.GELU(), nn.Linear(16, 5), nn.LogSoftmax(-1))

        def forward(self, x):
            return self.layers(x)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
            self.a = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.PReLU(8), nn.Conv2d(8, 8, 1))
            self.b = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 2, dilation=2), nn.LeakyReLU(0.1))
            self.head = nn.Linear(12, 4)

        def forward(self, x):
            x = F.max_pool2d(self.stem(x), 3, 2, 1)
            x = x + self.a(x)
            x = self.b(x)
            return self.head(x.mean((2, 3))), torch.sigmoid(F.adaptive_avg_pool2d(x, 1))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.ConvTranspose2d(4, 6, 4, 2, 1)
            self.out = nn.Conv2d(10, 2, 3, padding=1)

        def forward(self, x):
            y = F.interpolate(x, scale_factor=2, mode="nearest")
            y = torch.cat([torch.tanh(self.up(x)), y], 1)
            return F.pad(self.out(y), (1, 2, 0, 1), value=0.5).clamp(-0.5, 0.5)

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.rnn = kind(6, 10, num_layers=2, bidirectional=True)
            self.head = nn.Linear(20, 3)

        def forward(self, x):
            y, _ = self.rnn(x)
            return self.head(y[-1]), y

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 16)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

        def heads(self, x):
            return x.view(x.size(0), x.size(1), 4, 4).transpose(1, 2)

        def forward(self, ids):
            x = self.table(ids)
            h = self.norm1(x)
            a = torch.matmul(self.heads(self.q(h)), self.heads(self.k(h)).transpose(-1, -2)) / 2.0
            a = torch.softmax(a, -1)
            h = torch.matmul(a, self.heads(self.v(h))).transpose(1, 2)
            x = x + self.o(h.reshape(x.size(0), x.size(1), 16))
            x = x + self.down(F.relu(self.up(self.norm2(x))))
            return x, x.argmax(-1).float()

    class Moves(nn.Module):
        def forward(self, x, y):
            a, b = torch.split(x, [2, 4], 1)
            c = torch.where(a > 0, a, a * y[:, :2]) + b[:, 1:3]
            d = torch.stack([c, c.flip(1) * 0.5 + 0.1], -1).permute(0, 2, 1, 3).flatten(2)
            v, i = torch.topk(d, 2, -1)
            return d, v, i.float()

    torch.manual_seed(1)

    def r(*shape):
        return torch.randn(*shape)

    both = {0: "batch"}
    return {
        "mlp": (Mlp(), [r(2, 20)], [r(5, 20)], {"in_0": both}, 9),
        "residual": (Residual(), [r(1, 3, 32, 32)], [r(3, 3, 40, 36)],
                     {"in_0": {0: "batch", 2: "height", 3: "width"}}, 9),
        "decoder": (Decoder(), [r(1, 4, 6, 5)], [r(2, 4, 7, 9)],
                    {"in_0": {0: "batch", 2: "height", 3: "width"}}, 9),
        "lstm": (Recurrent(nn.LSTM), [r(4, 2, 6)], [r(7, 3, 6)], {"in_0": {0: "steps", 1: "batch"}}, 9),
        "gru": (Recurrent(nn.GRU), [r(4, 2, 6)], [r(7, 3, 6)], {"in_0": {0: "steps", 1: "batch"}}, 9),
        "encoder": (Encoder(), [torch.randint(0, 50, (1, 6))], [torch.randint(0, 50, (3, 9))],
                    {"in_0": {0: "batch", 1: "length"}}, 9),
        "moves": (Moves(), [r(2, 6, 4), r(2, 6, 4)], [r(3, 6, 4), r(3, 6, 4)], {"in_0": both, "in_1": both}, 10),
    }


LOWEST = {"mlp": 9, "residual": 9, "decoder": 9, "lstm": 9, "gru": 9, "encoder": 9, "moves": 10}


def names():
    return ["%s_op%d%s" % (a, n, d) for a in LOWEST for n in OPSETS if n >= LOWEST[a] for d in ("", "_dyn")] + \
        ["mlp_op13_wrong"]


def export(folder, name):
    import numpy
    import torch
    architecture, rest = name.rsplit("_op", 1)
    dynamic = rest.endswith("_dyn")
    wrong = {"input": {0: "batch"}, "out_0": {0: "batch"}} if rest.endswith("_wrong") else None
    opset = int(rest.split("_")[0])
    module, first, other, axes, _ = networks()[architecture]
    module.eval()
    data = other if dynamic else first
    with torch.no_grad():
        outputs = module(*data)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.onnx.export(module, tuple(first), "%s/%s.onnx" % (folder, name), opset_version=opset,
                          input_names=["in_%d" % i for i in range(len(first))],
                          output_names=["out_%d" % i for i in range(len(outputs))],
                          dynamic_axes=axes if dynamic else wrong)
    arrays = {"in_%d" % i: t.numpy() for i, t in enumerate(data)}
    arrays.update({"out_%d" % i: t.numpy() for i, t in enumerate(outputs)})
    numpy.savez("%s/%s.npz" % (folder, name), **arrays)


def main():
    import warnings
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["--list"]:
        import torch  # without it there is nothing to list
        print("\n".join(names()))
        return 0 if torch else 1
    for name in sys.argv[2:]:
        export(sys.argv[1], name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
