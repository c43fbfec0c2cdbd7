"""Large graphs of several kinds as protobuf bytes, to see how the optimizer grows with them. Each
takes the number of nodes and returns a ModelProto.
"""
from fixtures import field, initializer, node, value_info


def whole(nodes, constants=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "kind")
    graph += b"".join(field(5, c) for c in constants)
    graph += field(11, value_info("x", [1])) + field(12, value_info("out", [1]))
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph)


def chain(count):
    """x + x, then + x: no two nodes are the same, none is constant."""
    return whole([node("Add", [f"v{i}" if i else "x", "x"], [f"v{i + 1}" if i + 1 < count else "out"])
                  for i in range(count)])


def wide(count):
    """Products of x with constants, summed in one node: one value with all the readers."""
    each = [node("Mul", ["x", f"c{i}"], [f"m{i}"]) for i in range(count - 1)]
    return whole(each + [node("Sum", [f"m{i}" for i in range(count - 1)], ["out"])],
                 [initializer(f"c{i}", [1], [i + 0.5]) for i in range(count - 1)])


def diamonds(count):
    """A value parts in two, which meet again."""
    nodes, at = [], "x"
    for i in range(count // 3):
        nodes += [node("Exp", [at], [f"a{i}"]), node("Tanh", [at], [f"b{i}"]),
                  node("Sub", [f"a{i}", f"b{i}"], [f"d{i}"])]
        at = f"d{i}"
    return whole(nodes + [node("Identity", [at], ["out"])])


def constants(count):
    """Half of the nodes only compute with constants and fold away."""
    nodes, at = [], "x"
    for i in range(count // 2):
        nodes += [node("Add", [f"c{i}", "one"], [f"s{i}"]), node("Mul", [at, f"s{i}"], [f"v{i}"])]
        at = f"v{i}"
    return whole(nodes + [node("Identity", [at], ["out"])],
                 [initializer("one", [1], [1.0])] +
                 [initializer(f"c{i}", [1], [1e-3 * i]) for i in range(count // 2)])


def body(which, nodes, out):
    """A branch of an If whose result is `out`."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, f"{out}_{which}")
    return field(5, field(1, f"{which}_branch") + field(6, graph + field(12, value_info(out, [1]))) +
                 field(20, 5))


def choice(bit, out, then_nodes, then_out, else_nodes, else_out):
    return (node("If", [bit], [out]) + body("then", then_nodes, then_out) +
            body("else", else_nodes, else_out))


def exp_or_tanh(bit, out, at):
    """An If with a node in either branch."""
    return choice(bit, out, [node("Exp", [at], [f"{out}_then"])], f"{out}_then",
                  [node("Tanh", [at], [f"{out}_else"])], f"{out}_else")


BIT = [node("Cast", ["x"], ["bits"], attributes={"to": 9}), node("Squeeze", ["bits"], ["bit"])]


def subgraphs(count):
    """Conditions of the data, each with a node in either branch."""
    nodes, at = list(BIT), "x"
    for i in range(count // 3):
        nodes.append(exp_or_tanh("bit", f"v{i}", at))
        at = f"v{i}"
    return whole(nodes + [node("Identity", [at], ["out"])])


def known_conditions(count):
    """The same, of one constant condition: every branch moves out."""
    nodes = [node("Shape", ["x"], ["dims"]), node("Squeeze", ["dims"], ["one"]),
             node("Cast", ["one"], ["bit"], attributes={"to": 9})]
    at = "x"
    for i in range(count // 3):
        nodes.append(exp_or_tanh("bit", f"v{i}", at))
        at = f"v{i}"
    return whole(nodes + [node("Identity", [at], ["out"])])


def nested(count, depth=25):
    """Towers of conditions of the data, each inside a branch of the next."""
    nodes, at = list(BIT), "x"
    for i in range(count // (2 * depth + 1)):
        out = f"t{i}_{depth}"
        inner = [node("Exp", [at], [out])]
        for d in reversed(range(depth)):
            inner = [choice("bit", f"t{i}_{d}", inner, out, [node("Tanh", [at], [f"e{i}_{d}"])],
                            f"e{i}_{d}")]
            out = f"t{i}_{d}"
        nodes += inner
        at = out
    return whole(nodes + [node("Identity", [at], ["out"])])


def known_inside(count):
    """Conditions of the data, each with one of a constant condition in a branch."""
    nodes = BIT + [node("Shape", ["x"], ["dims"]), node("Squeeze", ["dims"], ["one"]),
                   node("Cast", ["one"], ["known"], attributes={"to": 9})]
    at = "x"
    for i in range(count // 5):
        nodes.append(choice("bit", f"v{i}", [exp_or_tanh("known", f"k{i}", at)], f"k{i}",
                            [node("Tanh", [at], [f"w{i}"])], f"w{i}"))
        at = f"v{i}"
    return whole(nodes + [node("Identity", [at], ["out"])])


def same(count):
    """A chain that becomes one node."""
    return whole([node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < count else "out"])
                  for i in range(count)])


def twins(count):
    """Pairs of nodes that compute the same, all read by one node."""
    each = [node("Mul", ["x", f"c{i // 2}"], [f"m{i}"]) for i in range(count - 1)]
    return whole(each + [node("Sum", [f"m{i}" for i in range(count - 1)], ["out"])],
                 [initializer(f"c{i}", [1], [i + 0.5]) for i in range(count // 2)])


def quantized(count):
    """Activations through codes and back."""
    nodes, at = [], "x"
    for i in range(count // 3):
        nodes += [node("QuantizeLinear", [at, "scale", "zero"], [f"q{i}"]),
                  node("DequantizeLinear", [f"q{i}", "scale", "zero"], [f"d{i}"]),
                  node("Relu" if i % 2 else "Tanh", [f"d{i}"], [f"v{i}"])]
        at = f"v{i}"
    return whole(nodes + [node("Identity", [at], ["out"])],
                 [initializer("scale", [], [0.1]), field(2, 3) + field(8, "zero") + field(9, b"\0")])


def functions(count):
    """Calls of as many functions, of two nodes each."""
    nodes, at, bodies = [], "x", b""
    for i in range(count // 3):
        bodies += field(25, field(1, f"f{i}") + field(4, "a") + field(5, "b") +
                        field(7, node("Exp" if i % 2 else "Tanh", ["a"], ["t"])) +
                        field(7, node("Add", ["t", "a"], ["b"])) +
                        field(9, field(1, "") + field(2, 17)) + field(10, "own"))
        nodes.append(node(f"f{i}", [at], [f"v{i}"], domain="own"))
        at = f"v{i}"
    nodes.append(node("Identity", [at], ["out"]))
    return whole(nodes) + bodies + field(8, field(1, "own") + field(2, 1))


KINDS = {"a chain": chain, "one wide sum": wide, "diamonds": diamonds, "constants": constants,
         "subgraphs": subgraphs, "known conditions": known_conditions, "nested conditions": nested,
         "known conditions inside": known_inside, "a chain of the same": same, "twins": twins,
         "quantized": quantized, "functions": functions}
