"""ops_control.py: If, Loop, Scan and SequenceMap with small bodies, optionals."""
import wire
from draw import BOOL, FLOAT, INT64, STRING, entry, product
from wire import Tensor


def body(nodes, inputs, outputs, initializers=None):
    """A subgraph; inputs: names to (kind, rank), outputs: names to (kind, rank)."""
    def info(kind, rank):
        return wire.Unsized(Tensor(kind, [0] * rank, []), ["%s%d" % ("d", i) for i in range(rank)])

    return wire.Graph(wire.graph(
        nodes, initializers or {}, {n: info(*k) for n, k in inputs.items()},
        [(n, info(*k).type_proto()) for n, k in outputs.items()]))


def step(op, inputs, output):
    return wire.node(op, "", inputs.split(), [output], {})


@entry("If", opset=(11, 13, 16, 21))
def branch(d):
    """Two bodies of another length; each reads an outer initializer."""
    d.attr("then_branch", body([step("Add", "a b", "r")], {}, {"r": (FLOAT, 1)},
                               {"a": Tensor(FLOAT, [3], [1.0, 2.0, 3.0]), "b": Tensor(FLOAT, [], [0.5])}))
    d.attr("else_branch", body([step("Mul", "c c", "r")], {}, {"r": (FLOAT, 1)},
                               {"c": Tensor(FLOAT, [2], [2.0, -3.0])}))
    d.input(BOOL, d.pick([], [1]), [d.chance(0.5)])


@entry("Loop", opset=(11, 13, 16, 21), weight=2)
def loop(d):
    """Carries one value, goes on while the counter is below a limit, and collects an output."""
    trips, limit = d.int(0, 5), d.int(0, 5)
    nodes = [step("Add", "carried one", "next"), step("Less", "counter limit", "going"),
             step("Mul", "next next", "seen")]
    inner = {"one": Tensor(FLOAT, [], [d.pick(1.0, 0.5)]), "limit": Tensor(INT64, [], [limit])}
    rank = d.int(0, 2)
    d.attr("body", body(nodes, {"counter": (INT64, 0), "condition": (BOOL, 0), "carried": (FLOAT, rank)},
                        {"going": (BOOL, 0), "next": (FLOAT, rank), "seen": (FLOAT, rank)}, inner))
    d.scalar(INT64, trips)
    if d.chance(0.7):
        d.scalar(BOOL, d.chance(0.8))
    else:
        d.absent()
    d.input(FLOAT, [d.dim(1) for _ in range(rank)], special=False)
    d.outputs = 2


@entry("Scan", opset=(9, 11, 16, 21), weight=2)
def scan(d):
    """One state, one or two scanned inputs, in either direction along any axis."""
    two = d.chance(0.4)
    rank = d.int(1, 3)
    length = d.int(1, 4)
    inner = [d.dim(1) for _ in range(rank - 1)]
    nodes = [step("Add", "state x", "sum"), step("Mul", "sum z" if two else "sum x", "out")]
    inputs = {"state": (FLOAT, rank - 1), "x": (FLOAT, rank - 1)}
    if two:
        inputs["z"] = (FLOAT, rank - 1)
    d.attr("body", body(nodes, inputs, {"sum": (FLOAT, rank - 1), "out": (FLOAT, rank - 1)}))
    d.attr("num_scan_inputs", 2 if two else 1)
    d.input(FLOAT, inner, special=False)
    axes, directions = [], []
    for _ in range(2 if two else 1):
        axis = d.int(0, rank - 1)
        axes.append(axis - rank if d.opset >= 11 and d.chance(0.3) else axis)
        directions.append(d.int(0, 1))
        d.input(FLOAT, inner[:axis] + [length] + inner[axis:], special=False)
    d.maybe("scan_input_axes", axes, 1 if any(axes) else 0.3)
    d.maybe("scan_input_directions", directions, 1 if any(directions) else 0.3)
    axis = d.int(0, rank - 1)
    d.maybe("scan_output_axes", [axis], 1 if axis else 0.3)
    d.maybe("scan_output_directions", [d.int(0, 1)])
    d.outputs = 2


@entry("SequenceMap", opset=17)
def sequence_map(d):
    items = []
    for _ in range(d.int(1, 3)):
        s = [d.dim(1)]
        items.append(Tensor(FLOAT, s, d.values(FLOAT, product(s), special=False)))
    d.attr("body", body([step("Add", "x y", "z")], {"x": (FLOAT, 1), "y": (FLOAT, 1)}, {"z": (FLOAT, 1)}))
    d.group(False, items)
    d.input(FLOAT, [1], special=False)


@entry("SequenceEmpty", opset=11)
def sequence_empty(d):
    d.maybe("dtype", d.pick(FLOAT, INT64, STRING))
