"""Kinds of the bench that work on sequences and graphs: functions of a Net that return outputs."""
import numpy as np


def feed_forward(net, x, inner, act, name=None):
    first, second = (name + ".first", name + ".second") if name else (None, None)
    return net.linear(act(net.linear(x, inner, first)), net.shape[x][-1], second)


def embed(net, words, length, width):
    ids = net.feed_ids("input_ids", words, 1, length)
    rows = net.gather(net.weight("words", [words, width], 1, 1.0), ids)
    return net.layer_norm(net.add(rows, net.weight("positions", [length, width], 1, 0.1)))


def small_transformer(net):
    """Four layers of width 128 over 64 words (Vaswani et al. 2017)."""
    x = embed(net, 8000, 64, 128)
    for _ in range(4):
        x = net.layer_norm(net.add(x, net.attention(x, 4)))
        x = net.layer_norm(net.add(x, feed_forward(net, x, 512, net.relu)))
    return [net.linear(x, 9)]


def bottleneck_encoder(net):
    """Wide rows, narrow layers between them, four feed-forward nets each (Sun et al. 2020)."""
    def scaled(x):      # in the place of a norm: one scale and bias for each column
        width, name = [net.shape[x][-1]], net.fresh()
        return net.add(net.mul(x, net.around(name + ".scale", width, 0.6)),
                       net.around(name + ".bias", width, 0))
    x = embed(net, 8000, 128, 512)
    for _ in range(6):
        narrow = scaled(net.linear(x, 128))
        y = scaled(net.add(narrow, net.attention(narrow, 4)))
        for _ in range(4):
            y = scaled(net.add(y, net.linear(net.relu(net.linear(y, 512)), 128)))
        x = scaled(net.add(x, net.linear(y, 512)))
    return [x]


def shared_layers(net):
    """Twelve layers with the weights of one (Lan et al. 2020), 64 words."""
    x = net.linear(embed(net, 8000, 64, 128), 768)
    for _ in range(12):
        x = net.layer_norm(net.add(x, net.attention(x, 12, name="attention")), "first")
        x = net.layer_norm(net.add(x, feed_forward(net, x, 3072, net.gelu, "inner")), "second")
    return [x]


def lstm_unrolled(net):
    """39 steps of one LSTM, each as two Gemms by the same weights."""
    steps, width = 39, 512
    x = net.feed_normal("frames", steps, 256)
    state = net.constant(np.zeros((1, width), np.float32))
    cell = state
    for step in range(steps):
        row = net.gather(x, net.constant(np.array([step], np.int64)))
        gates = net.add(net.gemm(row, 4 * width, "in"), net.gemm(state, 4 * width, "back"))
        parts = net.op("Split", [gates], [[1, width]] * 4, outputs=4, axis=1)
        kept = net.mul(net.sigmoid(parts[1]), cell)
        cell = net.add(kept, net.mul(net.sigmoid(parts[0]), net.unary("Tanh", parts[3])))
        state = net.mul(net.sigmoid(parts[2]), net.unary("Tanh", cell))
    return [net.gemm(state, 10)]


def cross_decoder(net):
    """Four layers of a decoder, 16 words, over an encoder's 1,500 rows (Radford et al. 2022)."""
    memory = net.feed_normal("encoder_states", 1, 1500, 384)
    x = embed(net, 8000, 16, 384)
    for _ in range(4):
        x = net.add(x, net.attention(net.layer_norm(x), 6))
        x = net.add(x, net.attention(net.layer_norm(x), 6, memory))
        x = net.add(x, feed_forward(net, net.layer_norm(x), 1536, net.gelu))
    return [net.linear(net.layer_norm(x), 8000)]


def graph_sums(net):
    """Rows of neighbours gathered, put through a small net and added up (Gilmer et al. 2017)."""
    nodes, edges, width = 2000, 12000, 64
    x = net.feed_normal("nodes", nodes, 32)
    source, target = (net.feed_ids(name, nodes, edges) for name in ("source", "target"))
    weight = net.feed_normal("weights", edges, 8)
    x = net.relu(net.linear(x, width))
    places = net.reshape(target, -1, 1)
    for _ in range(3):
        pair = net.concat([net.gather(x, source), net.gather(x, target), weight], axis=1)
        message = net.linear(net.relu(net.linear(pair, width)), width)
        blank = net.constant(np.zeros((nodes, width), np.float32))
        summed = net.op("ScatterND", [blank, places, message], [nodes, width], reduction="add")
        x = net.relu(net.linear(net.concat([x, summed], axis=1), width))
    return [net.linear(x, 7)]


def graph_attention(net):
    """A softmax over the edges into each node (Velickovic et al. 2018), four heads."""
    nodes, edges, heads, part = 1500, 8000, 4, 16
    x = net.feed_normal("nodes", nodes, 64)
    source, target = (net.feed_ids(name, nodes, edges) for name in ("source", "target"))
    places = net.reshape(target, -1, 1)

    def sum_into(rows, *shape):
        blank = net.constant(np.zeros((nodes,) + shape, np.float32))
        return net.op("ScatterND", [blank, places, rows], [nodes, *shape], reduction="add")
    for _ in range(3):
        rows = net.linear(x, heads * part)
        score = net.add(net.gather(net.linear(rows, heads), source),
                        net.gather(net.linear(rows, heads), target))
        grown = net.unary("Exp", net.unary("Tanh", net.unary("LeakyRelu", score, alpha=0.2)))
        share = net.binary("Div", grown, net.gather(sum_into(grown, heads), target))
        parts = net.reshape(net.gather(rows, source), edges, heads, part)
        weighed = net.reshape(net.mul(parts, net.reshape(share, edges, heads, 1)), edges, -1)
        x = net.unary("Elu", sum_into(weighed, heads * part))
    return [net.linear(x, 7)]


KINDS = (small_transformer, bottleneck_encoder, shared_layers, lstm_unrolled, cross_decoder,
         graph_sums, graph_attention)
