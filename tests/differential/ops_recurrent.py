"""ops_recurrent.py: RNN, GRU, LSTM."""
from draw import DOUBLE, FLOAT, INT32, entry

ACTIVATIONS = ("Tanh", "Sigmoid", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu",
               "Softsign", "Softplus", "ScaledTanh")
# Inputs are often halves: ThresholdedRelu at its very threshold is x here and 0 in ONNX Runtime.
ALPHA = {"Affine": 0.7, "LeakyRelu": 0.1, "ThresholdedRelu": 0.4321, "HardSigmoid": 0.3, "Elu": 0.9,
         "ScaledTanh": 0.8}
BETA = {"Affine": 0.1, "HardSigmoid": 0.4, "ScaledTanh": 0.6}


def recurrent(gates, states, functions):
    def draw(d):
        steps, batch, width, hidden = d.int(1, 4), d.int(1, 4), d.int(1, 4), d.int(1, 4)
        direction = d.pick("forward", "reverse", "bidirectional")
        n = 2 if direction == "bidirectional" else 1
        d.maybe("direction", direction, 0.5 if direction == "forward" else 1)
        d.attr("hidden_size", hidden)
        if d.chance(0.3):
            names = [d.pick(ACTIVATIONS) for _ in range(functions * n)]
            d.attr("activations", names)
            alpha = [ALPHA[a] for a in names if a in ALPHA]
            beta = [BETA[a] for a in names if a in BETA]
            if alpha:
                d.attr("activation_alpha", alpha)
            if beta:
                d.attr("activation_beta", beta)
        d.maybe("clip", 0.9, 0.2)
        if d.op == "GRU":
            d.maybe("linear_before_reset", d.int(0, 1))
        if d.op == "LSTM":
            d.maybe("input_forget", d.int(0, 1), 0.2)
        kind = FLOAT
        first = (steps, batch)
        layout = 0
        state = [n, batch, hidden]
        d.input(kind, list(first) + [width], low=-1, high=1, special=False)
        d.input(kind, [n, gates * hidden, width], low=-1, high=1, special=False)
        d.input(kind, [n, gates * hidden, hidden], low=-1, high=1, special=False)
        if d.chance(0.6):
            d.input(kind, [n, 2 * gates * hidden], low=-1, high=1, special=False)
        else:
            d.absent()
        if d.chance(0.4):
            d.input(INT32, [batch], [d.int(1, steps) for _ in range(batch)])
        else:
            d.absent()
        for _ in range(states):
            if d.chance(0.6):
                d.input(kind, state, low=-1, high=1, special=False)
            else:
                d.absent()
        if d.op == "LSTM" and d.chance(0.4):
            d.input(kind, [n, 3 * hidden], low=-1, high=1, special=False)
        d.outputs = d.pick([1], [1] * (states + 1), [0, 1])
        d.tolerance(1e-4, 1e-3)
    return draw


entry("RNN", opset=(7, 14, 22), weight=2)(recurrent(1, 1, 1))
entry("GRU", opset=(7, 14, 22), weight=3)(recurrent(3, 1, 2))
entry("LSTM", opset=(7, 14, 22), weight=3)(recurrent(4, 2, 3))
