"""Convolutional kinds of the bench: each a function of a Net that returns its outputs.

They follow the designs that papers name, not any file: what matters is their shape.
"""


def dense_blocks(net):
    """Layers that read all layers before them (Huang et al. 2017, DenseNet-121)."""
    x = net.feed_normal("image", 1, 3, 224, 224)
    x = net.pool("Max", net.relu(net.batch_norm(net.conv(x, 64, 7, 2))), 3, 2, 1)
    for block, layers in enumerate((6, 12, 24, 16)):
        for _ in range(layers):
            y = net.conv(net.relu(net.batch_norm(x)), 128, 1)
            y = net.conv(net.relu(net.batch_norm(y)), 32, 3)
            x = net.concat([x, y])
        if block < 3:
            x = net.conv(net.relu(net.batch_norm(x)), net.shape[x][1] // 2, 1)
            x = net.pool("Average", x, 2, 2)
    x = net.global_pool(net.relu(net.batch_norm(x)))
    return [net.gemm(net.reshape(x, 1, -1), 1000)]


def squeeze_excite(net, x, part=4):
    channels = net.shape[x][1]
    y = net.relu(net.conv(net.global_pool(x), channels // part, 1))
    return net.mul(x, net.unary("HardSigmoid", net.conv(y, channels, 1), alpha=1 / 6, beta=0.5))


def depthwise_small(net):
    """Inverted residuals, squeeze and excitation, hard swish (Howard et al. 2019, small)."""
    x = net.hard_swish(net.conv(net.feed_normal("image", 1, 3, 224, 224), 16, 3, 2))
    rows = ((3, 16, 16, 2, True, False), (3, 72, 24, 2, False, False), (3, 88, 24, 1, False, False),
            (5, 96, 40, 2, True, True), (5, 240, 40, 1, True, True), (5, 240, 40, 1, True, True),
            (5, 120, 48, 1, True, True), (5, 144, 48, 1, True, True), (5, 288, 96, 2, True, True),
            (5, 576, 96, 1, True, True), (5, 576, 96, 1, True, True))
    for size, inner, channels, stride, excite, swish in rows:
        act = net.hard_swish if swish else net.relu
        y = act(net.depthwise(act(net.conv(x, inner, 1)), size, stride))
        y = net.conv(squeeze_excite(net, y) if excite else y, channels, 1)
        x = net.add(x, y) if net.shape[x] == net.shape[y] else y
    x = net.global_pool(net.hard_swish(net.conv(x, 576, 1)))
    return [net.gemm(net.hard_swish(net.gemm(net.reshape(x, 1, -1), 1024)), 1000)]


def shuffle(net, x):
    batch, channels, high, wide = net.shape[x]
    x = net.transpose(net.reshape(x, batch, 2, channels // 2, high, wide), 0, 2, 1, 3, 4)
    return net.reshape(x, batch, channels, high, wide)


def channel_shuffles(net):
    """Half of the channels pass by, then all change places (Ma et al. 2018, 1x)."""
    def branch(x, channels, stride):
        y = net.relu(net.conv(x, channels, 1))
        return net.relu(net.conv(net.depthwise(y, 3, stride), channels, 1))
    x = net.relu(net.conv(net.feed_normal("image", 1, 3, 224, 224), 24, 3, 2))
    x = net.pool("Max", x, 3, 2, 1)
    for channels, units in ((116, 4), (232, 8), (464, 4)):
        half = channels // 2
        side = net.relu(net.conv(net.depthwise(x, 3, 2), half, 1))
        x = shuffle(net, net.concat([side, branch(x, half, 2)]))
        for _ in range(units - 1):
            keep, work = net.halves(x)
            x = shuffle(net, net.concat([keep, branch(work, half, 1)]))
    x = net.global_pool(net.relu(net.conv(x, 1024, 1)))
    return [net.gemm(net.reshape(x, 1, -1), 1000)]


def landmarks(net):
    """A face of 112 x 112, inverted residuals, three scales to one layer (Guo et al. 2019)."""
    def residual(x, channels, stride, times):
        y = net.relu(net.conv(x, net.shape[x][1] * times, 1))
        y = net.conv(net.relu(net.depthwise(y, 3, stride)), channels, 1)
        return net.add(x, y) if net.shape[x] == net.shape[y] else y
    x = net.relu(net.conv(net.feed_normal("face", 1, 3, 112, 112), 64, 3, 2))
    x = net.relu(net.depthwise(x))
    for channels, stride, times, count in ((64, 2, 2, 5), (128, 2, 2, 1), (128, 1, 4, 6),
                                           (16, 1, 2, 1)):
        for k in range(count):
            x = residual(x, channels, stride if k == 0 else 1, times)
    second = net.relu(net.conv(x, 32, 3, 2))
    third = net.relu(net.conv(second, 128, 7, 1, pad=0))
    parts = [net.reshape(net.global_pool(x), 1, -1), net.reshape(net.global_pool(second), 1, -1),
             net.reshape(third, 1, -1)]
    return [net.gemm(net.concat(parts), 196)]


def face_prelu(net):
    """Residual blocks with PRelu, no other activation, 112 x 112 (Deng et al. 2019, 18 layers)."""
    x = net.prelu(net.conv(net.feed_normal("face", 1, 3, 112, 112), 64))
    for channels, blocks in ((64, 2), (128, 2), (256, 2), (512, 2)):
        for k in range(blocks):
            stride = 2 if k == 0 else 1
            y = net.prelu(net.conv(net.batch_norm(x), channels, 3))
            y = net.conv(y, channels, 3, stride)
            x = net.add(y, net.conv(x, channels, 1, stride) if stride == 2 else x)
    return [net.gemm(net.reshape(net.batch_norm(x), 1, -1), 512)]


def face_cascade(net):
    """PRelu, then MaxPool, three heads (Zhang et al. 2016, the last net, on 16 candidates)."""
    x = net.feed_normal("faces", 16, 3, 48, 48)
    for filters, size, pool in ((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)):
        x = net.prelu(net.conv(x, filters, size, pad=0))
        x = net.pool("Max", x, pool, 2, pool // 3) if pool else x
    x = net.gemm(net.reshape(x, 16, -1), 256)
    slope = net.around("last.slope", [256], 0.25)
    x = net.op("PRelu", [x, slope], net.shape[x])
    return [net.unary("Softmax", net.gemm(x, 2), axis=1), net.gemm(x, 4), net.gemm(x, 10)]


def slim_channels(net):
    """Branches of 8 to 64 channels that exchange what they see (Wang et al. 2019, made slim)."""
    def block(x):
        y = net.conv(net.relu(net.conv(x, net.shape[x][1])), net.shape[x][1])
        return net.relu(net.add(x, y))

    def exchange(xs):
        out = []
        for i, target in enumerate(xs):
            total = target
            for j, source in enumerate(xs):
                if j > i:
                    y = net.upsample(net.conv(source, net.shape[target][1], 1), 2 ** (j - i))
                    total = net.add(total, y)
                elif j < i:
                    y = source
                    for _ in range(i - j - 1):
                        y = net.relu(net.conv(y, net.shape[source][1], 3, 2))
                    total = net.add(total, net.conv(y, net.shape[target][1], 3, 2))
            out.append(net.relu(total))
        return out
    x = net.relu(net.conv(net.feed_normal("image", 1, 3, 256, 192), 32, 3, 2))
    branches = [net.relu(net.conv(x, 8, 3, 2))]
    for _ in range(3):
        branches.append(net.relu(net.conv(branches[-1], 2 * net.shape[branches[-1]][1], 3, 2)))
        branches = exchange([block(block(b)) for b in branches])
    return [net.conv(branches[0], 17, 1)]


def text_detector(net):
    """A page of 800 x 608 down to 1/32 and up again, chains of thin convolutions."""
    x = net.hard_swish(net.conv(net.feed_normal("page", 1, 3, 800, 608), 8, 3, 2))
    levels = []
    for size, inner, channels, stride, count in ((3, 16, 8, 1, 1), (3, 40, 16, 2, 2),
                                                 (5, 64, 24, 2, 2), (5, 144, 40, 2, 3),
                                                 (5, 240, 56, 2, 3)):
        for k in range(count):
            y = net.hard_swish(net.conv(x, inner, 1))
            y = net.hard_swish(net.depthwise(y, size, stride if k == 0 else 1))
            y = net.conv(y, channels, 1)
            x = net.add(x, y) if net.shape[x] == net.shape[y] else y
        levels.append(x)
    levels = levels[1:]
    merged = [net.conv(y, 96, 1) for y in levels]
    for k in (2, 1, 0):
        merged[k] = net.add(merged[k], net.upsample(merged[k + 1]))
    parts = [net.conv(y, 24) for y in merged]
    parts = [y if k == 0 else net.upsample(y, 2 ** k) for k, y in enumerate(parts)]
    x = net.relu(net.conv(net.concat(parts), 24))
    x = net.upsample(net.relu(net.conv(net.upsample(x), 24)))
    return [net.sigmoid(net.conv(x, 1))]


def audio_encoder(net):
    """Strided convolutions over a second of samples, then residual ones (1-D throughout)."""
    x = net.feed_normal("samples", 1, 1, 16000)
    for filters, size, stride in ((64, 11, 5), (128, 8, 4), (128, 4, 2), (256, 4, 2), (256, 4, 2)):
        x = net.relu(net.batch_norm(net.conv(x, filters, size, stride)))
    for dilation in (1, 2, 4, 8) * 2:
        y = net.relu(net.batch_norm(net.conv(x, 256, 3, dilation=dilation)))
        x = net.add(x, net.batch_norm(net.conv(y, 256, 1)))
    return [net.gemm(net.reshape(net.global_pool(net.relu(x)), 1, -1), 35)]


def audio_gates(net):
    """Dilated convolutions with tanh and sigmoid gates (van den Oord et al. 2016), 1-D."""
    x = net.conv(net.feed_normal("frames", 1, 80, 400), 64, 1)
    total = None
    for dilation in (1, 2, 4, 8, 16, 32) * 2:
        y = net.mul(net.unary("Tanh", net.conv(x, 64, 3, dilation=dilation)),
                    net.sigmoid(net.conv(x, 64, 3, dilation=dilation)))
        skip = net.conv(y, 128, 1)
        total = skip if total is None else net.add(total, skip)
        x = net.add(x, net.conv(y, 64, 1))
    return [net.conv(net.relu(net.conv(net.relu(total), 128, 1)), 256, 1)]


KINDS = (dense_blocks, depthwise_small, channel_shuffles, landmarks, face_prelu, face_cascade,
         slim_channels, text_detector, audio_encoder, audio_gates)
