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


def root_mean_norm(net, x):
    """x / sqrt(mean of its squares), as exporters spell it."""
    shape = net.shape[x][:-1] + [1]
    mean = net.op("ReduceMean", [net.mul(x, x)], shape, axes=[-1], keepdims=1)
    root = net.unary("Sqrt", net.add(mean, net.constant(np.float32(1e-6))))
    scale = net.around(net.fresh() + ".scale", [net.shape[x][-1]], 1)
    return net.mul(net.binary("Div", x, root), scale)


def biased_attention(net, x, heads, part, memory=None, masked=False):
    """Without scaling, and with a bias for each distance (Raffel et al. 2019)."""
    name, source = net.fresh(), memory or x
    batch, length = net.shape[x][:2]
    far = net.shape[source][1]

    def split(y, what, *perm):
        rows = net.matmul(y, net.weight(name + what, [net.shape[y][-1], heads * part],
                                        net.shape[y][-1], 1.0))
        return net.transpose(net.reshape(rows, batch, -1, heads, part), *perm)
    scores = net.matmul(split(x, ".query", 0, 2, 1, 3), split(source, ".key", 0, 2, 3, 1))
    if not memory:
        bias = net.generator(name).standard_normal((1, heads, length, far), dtype=np.float32)
        bias += np.triu(np.full((length, far), -1e4, np.float32), 1) if masked else 0
        scores = net.add(scores, net.constant(bias))
    mixed = net.matmul(net.unary("Softmax", scores, axis=-1), split(source, ".value", 0, 2, 1, 3))
    joined = net.reshape(net.transpose(mixed, 0, 2, 1, 3), batch, length, heads * part)
    return net.matmul(joined, net.weight(name + ".output", [heads * part, net.shape[x][-1]],
                                         heads * part, 1.0))


def unbiased_forward(net, x, inner):
    name, width = net.fresh(), net.shape[x][-1]
    grown = net.relu(net.matmul(x, net.weight(name + ".in", [width, inner], width)))
    return net.matmul(grown, net.weight(name + ".out", [inner, width], inner, 1.0))


def text_encoder(net):
    """Four layers of an encoder of texts to texts (Raffel et al. 2019), 64 words."""
    x = net.gather(net.weight("words", [8000, 384], 1, 1.0),
                   net.feed_ids("input_ids", 8000, 1, 64))
    for _ in range(4):
        x = net.add(x, biased_attention(net, root_mean_norm(net, x), 6, 64))
        x = net.add(x, unbiased_forward(net, root_mean_norm(net, x), 1536))
    return [root_mean_norm(net, x)]


def text_decoder(net):
    """Its decoder, 12 words over 64 rows."""
    memory = net.feed_normal("encoder_states", 1, 64, 384)
    x = net.gather(net.weight("words", [8000, 384], 1, 1.0),
                   net.feed_ids("input_ids", 8000, 1, 12))
    for _ in range(4):
        x = net.add(x, biased_attention(net, root_mean_norm(net, x), 6, 64, masked=True))
        x = net.add(x, biased_attention(net, root_mean_norm(net, x), 6, 64, memory))
        x = net.add(x, unbiased_forward(net, root_mean_norm(net, x), 1536))
    return [net.matmul(root_mean_norm(net, x), net.weight("lm_head", [384, 8000], 384, 1.0))]


def speech_lstm(net):
    """Two LSTMs of two directions over 100 frames, as a tagger of sounds has them."""
    steps, hidden, x = 100, 256, net.feed_normal("frames", 100, 1, 80)
    for _ in range(2):
        name, width = net.fresh(), net.shape[x][-1]
        y = net.op("LSTM", [x, net.weight(name + ".w", [2, 4 * hidden, width], width, 1.0),
                            net.weight(name + ".r", [2, 4 * hidden, hidden], hidden, 1.0),
                            net.around(name + ".b", [2, 8 * hidden], 0)],
                   [steps, 2, 1, hidden], hidden_size=hidden, direction="bidirectional")
        x = net.reshape(net.transpose(y, 0, 2, 1, 3), steps, 1, 2 * hidden)
    return [net.linear(x, 64)]


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
         text_encoder, text_decoder, speech_lstm, graph_sums, graph_attention)
