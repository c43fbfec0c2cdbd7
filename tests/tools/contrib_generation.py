"""Operators that write sequences: greedy, sampled, by beams (see make_contrib.py)."""
import numpy as np
import onnxruntime
from contrib_case import F, I32, I64, MS, ints, onnx_model, real, write
from onnx import helper, numpy_helper

VOCAB, HEADS, SIZE = 11, 2, 3


def gpt_weights():
    width = HEADS * SIZE
    return dict(words=real(VOCAB, width), places=real(16, width), out=real(width, VOCAB) * 2,
                   count=real(VOCAB) * 0.1, split=np.array([0, 0, HEADS, SIZE], np.int64),
                   joined=np.array([0, 1, width], np.int64), zero=np.array([0], np.int64),
                   one=np.array([1], np.int64))


def decoder(weights=None):
    """A body with the signature of a GPT-2 decoder: the mean of what was seen says what comes."""
    weights = weights or gpt_weights()
    nodes = [helper.make_node(op, i.split(), [o], **a) for op, i, o, a in (
        ("Gather", "words input_ids", "word", {}), ("Gather", "places position_ids", "place", {}),
        ("Add", "word place", "x", {}), ("Reshape", "x split", "rows", {}),
        ("Transpose", "rows", "heads", {"perm": [0, 2, 1, 3]}),
        ("Unsqueeze", "heads zero", "fresh", {}), ("Concat", "fresh fresh", "both", {"axis": 0}),
        ("Concat", "past_0 both", "present_0", {"axis": 3}),
        ("ReduceMean", "present_0", "seen", {"axes": [0, 3], "keepdims": 0}),
        ("Unsqueeze", "seen one", "seen1", {}), ("Reshape", "seen1 joined", "state", {}),
        ("Add", "x state", "sum", {}), ("MatMul", "sum out", "scores", {}),
        ("Cast", "attention_mask", "weight", {"to": F}),
        ("ReduceSum", "weight one", "tokens", {}), ("Unsqueeze", "tokens one", "tokens1", {}),
        ("Mul", "tokens1 count", "bias", {}), ("Add", "scores bias", "logits", {}))]
    ids = [helper.make_tensor_value_info(k, I32, ["b", n]) for k, n in
           (("input_ids", "s"), ("position_ids", "s"), ("attention_mask", "t"))]
    past = helper.make_tensor_value_info("past_0", F, [2, "b", HEADS, "p", SIZE])
    return helper.make_graph(
        nodes, "decoder", [*ids, past],
        [helper.make_tensor_value_info("logits", F, ["b", "s", VOCAB]),
         helper.make_tensor_value_info("present_0", F, [2, "b", HEADS, "t", SIZE])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])


def generation():
    def greedy(name, prompt, length, eos=VOCAB - 1, **more):
        inputs = dict(ids=np.array(prompt, np.int32), max=np.array([length], np.int32), min=None,
                      penalty=None, vocab=None, prefix=None, mask=None) | {
                          k: v for k, v in more.items() if isinstance(v, np.ndarray)}
        while inputs[list(inputs)[-1]] is None:
            inputs.popitem()
        attributes = {k: v for k, v in more.items() if not isinstance(v, np.ndarray)}
        write(f"greedy_search_{name}", "GreedySearch", inputs, {"sequences": I32},
              {"decoder": decoder(), "eos_token_id": eos, "pad_token_id": 0} | attributes, opset=13)
    greedy("plain", [[3, 5, 2], [0, 4, 1]], 10)
    greedy("no_repeat", [[3, 5, 2, 5]], 12, no_repeat_ngram_size=2,
           penalty=np.array([1.4], np.float32))
    greedy("masks", [[3, 5], [1, 2]], 9, vocab=np.array([1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1],
                                                        np.int32),
           prefix=ints(2, 2, VOCAB), mask=np.array([[1, 1], [0, 1]], np.int32),
           min=np.array([5], np.int32), penalty=np.array([1.2], np.float32))


def masks(*vocab):
    return np.isin(np.arange(VOCAB), vocab, invert=True).astype(np.int32)


def number(value, dtype=np.int32):
    return np.array([value], dtype)


def trimmed(inputs):
    inputs = dict(inputs)
    while inputs[list(inputs)[-1]] is None:
        inputs.popitem()
    return inputs


def sampling():
    def sample(name, prompt, length, more=(), outputs=("sequences",), **attributes):
        inputs = dict(ids=np.array(prompt, np.int32), max=number(length), min=None, penalty=None,
                      vocab=None, prefix=None, mask=None, presence=None, seed=None) | dict(more)
        write(f"sampling_{name}", "Sampling", trimmed(inputs), {k: I32 for k in outputs},
              {"decoder": decoder(), "eos_token_id": VOCAB - 1, "pad_token_id": 0} | attributes,
              opset=13)
    sample("one_token", [[3, 5, 2], [0, 4, 1]], 9, top_p=0.001, temperature=0.7)
    sample("seed", [[3, 5, 2], [1, 4, 1]], 16, {"seed": number(42)}, top_p=0.9, temperature=1.5)
    sample("seed_keep", [[3, 5]], 17, {"seed": number(7), "min": number(16),
                                        "penalty": number(1.1, np.float32)},
           top_p=0.3, min_tokens_to_keep=4, filter_value=-1e4)
    sample("custom", [[3, 5], [2, 6]], 14, {"seed": number(1234)}, top_p=0.7, custom=1)
    # onnxruntime takes the whole mask off token 0 of the first row: nothing else is asked here
    presence = np.zeros((2, VOCAB), np.int32)
    presence[0, 0] = 1
    sample("presence", [[3, 5], [2, 6]], 14,
           {"seed": number(5), "presence": presence, "min": number(13)},
           top_p=0.5, presence_penalty=-2.5)


def beams():
    def beam(name, prompt, length, count=3, wanted=2, outputs=("sequences", "sums"), more=(),
             eos=VOCAB - 1, **attributes):
        inputs = dict(ids=np.array(prompt, np.int32), max=number(length), min=number(0),
                      beams=number(count), wanted=number(wanted),
                      length_penalty=number(1, np.float32), penalty=None, vocab=None, prefix=None,
                      mask=None) | dict(more)
        write(f"beam_search_{name}", "BeamSearch", trimmed(inputs),
              {k: I32 if k == "sequences" else F for k in outputs},
              {"decoder": decoder(), "eos_token_id": eos, "pad_token_id": 0} | attributes, opset=13)
    beam("plain", [[3, 5, 2], [0, 4, 1]], 12)
    beam("early", [[3, 5, 2], [7, 4, 1]], 14, count=4, wanted=4, early_stopping=1, eos=5)
    beam("one", [[3, 5, 2]], 9, count=1, wanted=1, outputs=("sequences",))
    beam("scores", [[3, 5], [1, 2]], 6, outputs=("sequences", "sums", "scores"), vocab_size=VOCAB)
    beam("penalties", [[3, 5, 2, 5]], 12, no_repeat_ngram_size=2, eos=4,
         more={"length_penalty": number(0.3, np.float32), "penalty": number(1.4, np.float32),
               "min": number(7)})
    beam("masks", [[3, 5], [1, 2]], 9, count=2, eos=7,
         more={"vocab": masks(3, 6), "prefix": np.stack([masks(1, 2, 7), masks(5)]),
               "mask": np.array([[1, 1], [0, 1]], np.int32),
               "length_penalty": number(2, np.float32)})
    for eos in (1, 3, 8):
        beam(f"batch_{eos}", ints(VOCAB, 3, 4, low=1), 17, count=3, wanted=3, eos=eos)


def graph(name, nodes, inputs, outputs, weights):
    return helper.make_graph(
        [helper.make_node(op, i.split(), [o], **a) for op, i, o, a in nodes], name,
        [helper.make_tensor_value_info(k, t, d) for k, t, d in inputs],
        [helper.make_tensor_value_info(k, t, d) for k, t, d in outputs],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])


def own_step(ids):
    """Nodes that make the state of new tokens, add it to the past ones and say what comes."""
    return [("Gather", f"words {ids}", "word", {}), ("Reshape", "word split", "rows", {}),
            ("Transpose", "rows", "fresh", {"perm": [0, 2, 1, 3]}),
            ("Concat", "past_key_self_0 fresh", "present_key_self_0", {"axis": 2}),
            ("Concat", "past_value_self_0 fresh", "present_value_self_0", {"axis": 2}),
            ("ReduceMean", "present_key_self_0", "seen", {"axes": [2], "keepdims": 0}),
            ("Mul", "past_key_cross_0 past_value_cross_0", "cross", {}),
            ("ReduceMean", "cross", "read", {"axes": [2], "keepdims": 0}),
            ("Add", "seen read", "state", {}), ("Reshape", "state joined", "joined_state", {}),
            ("Add", "joined_state word", "sum", {}), ("MatMul", "sum out", "logits", {})]


def own_encoder():
    return [("Gather", "sources encoder_input_ids", "source", {}),
            ("Cast", "encoder_attention_mask", "weight", {"to": F}),
            ("Unsqueeze", "weight last", "weights", {}),
            ("Mul", "source weights", "encoder_hidden_states", {}),
            ("Reshape", "encoder_hidden_states split", "source_rows", {}),
            ("Transpose", "source_rows", "present_key_cross_0", {"perm": [0, 2, 1, 3]}),
            ("Tanh", "present_key_cross_0", "present_value_cross_0", {})]


def encoder_decoder():
    """Bodies with the signatures of T5: the encoder with the first step, or without it."""
    width = HEADS * SIZE
    shared = dict(split=np.array([0, 0, HEADS, SIZE], np.int64))
    step = dict(words=real(VOCAB, width), out=real(width, VOCAB) * 2,
                joined=np.array([0, 1, width], np.int64))
    reads = dict(sources=real(VOCAB, width) * 2, last=np.array([2], np.int64))
    ids = [(k, I32, ["b", n]) for k, n in (("encoder_input_ids", "e"),
                                          ("encoder_attention_mask", "e"))]
    def states(first, kinds, length):
        return [(f"{first}_{part}_{k}_0", F, ["b", HEADS, length, SIZE])
                for k in kinds for part in ("key", "value")]
    logits = ("logits", F, ["b", 1, VOCAB])
    hidden = ("encoder_hidden_states", F, ["b", "e", width])

    def decode(with_hidden):
        return graph("decoder", own_step("input_ids"),
                     [("input_ids", I32, ["b", 1]), ids[1], *([hidden] if with_hidden else []),
                      *states("past", ["self"], "p"), *states("past", ["cross"], "e")],
                     [logits, *states("present", ["self"], "t")], shared | step)
    lone = graph("encoder", own_encoder(), ids, states("present", ["cross"], "e"), shared | reads)
    renamed = [(op, i.replace("past_key_cross", "present_key_cross")
                .replace("past_value_cross", "present_value_cross"), o, a)
               for op, i, o, a in own_step("decoder_input_ids")]
    first = [("Identity", "fresh", o, {}) if o.startswith("present_") else (op, i, o, a)
             for op, i, o, a in renamed]
    whole = graph("encoder", own_encoder() + first, [*ids, ("decoder_input_ids", I32, ["b", 1])],
                  [logits, hidden, *states("present", ["self"], 1),
                   *states("present", ["cross"], "e")], shared | step | reads)
    return (lone, decode(False)), (whole, decode(True)), (whole, decode(False))


def beams_encoded():
    forms = encoder_decoder()

    def beam(name, form, prompt, length, count=3, wanted=2, outputs=("sequences", "sums"),
             more=(), eos=VOCAB - 1, **attributes):
        inputs = dict(ids=np.array(prompt, np.int32), max=number(length), min=number(0),
                      beams=number(count), wanted=number(wanted),
                      length_penalty=number(1, np.float32), penalty=None, vocab=None, prefix=None,
                      mask=None) | dict(more)
        encoder, body = forms[form]
        write(f"beam_search_{name}", "BeamSearch", trimmed(inputs),
              {k: I32 if k == "sequences" else F for k in outputs},
              {"encoder": encoder, "decoder": body, "eos_token_id": eos, "pad_token_id": 0,
               "model_type": 1, "decoder_start_token_id": 2} | attributes, opset=13)
    beam("t5", 0, [[3, 5, 2, 8], [0, 4, 1, 0]], 12)
    beam("t5_scores", 0, [[3, 5, 2]], 6, outputs=("sequences", "sums", "scores"), vocab_size=VOCAB)
    beam("t5_mask", 0, [[3, 5, 2], [1, 1, 6]], 9, count=4, wanted=3, eos=5, early_stopping=1,
         more={"mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32),
               "penalty": number(1.3, np.float32)})
    beam("t5_first_step", 1, [[3, 5, 2, 8], [0, 4, 1, 0]], 12)
    beam("t5_first_step_states", 2, [[3, 5, 2, 8]], 10, count=2, eos=4, no_repeat_ngram_size=2)


def whisper_bodies():
    """Bodies with the signatures of Whisper; a prompt of two tokens starts the first step."""
    width = HEADS * SIZE
    step = dict(words=real(VOCAB, width), out=real(width, VOCAB) * 2,
                joined=np.array([0, 1, width], np.int64),
                split=np.array([0, 0, HEADS, SIZE], np.int64))

    def states(first, kinds, length):
        return [(f"{first}_{part}_{k}_0", F, ["b", HEADS, length, SIZE])
                for k in kinds for part in ("key", "value")]
    logits = ("logits", F, ["b", "s", VOCAB])
    hidden = ("encoder_hidden_states", F, ["b", "e", width])
    body = graph("decoder", [*own_step("input_ids")],
                 [("input_ids", I32, ["b", 1]), hidden, *states("past", ["self"], "p"),
                  *states("past", ["cross"], "e")],
                 [logits, *states("present", ["self"], "t")], step)
    first = [("Identity", "fresh", o, {}) if o.startswith("present_") else
             (op, i.replace("past_key_cross", "present_key_cross")
              .replace("past_value_cross", "present_value_cross"), o, a)
             for op, i, o, a in own_step("decoder_input_ids")]
    listen = [("Transpose", "encoder_input_ids", "encoder_hidden_states", {"perm": [0, 2, 1]}),
              ("Reshape", "encoder_hidden_states split", "heard", {}),
              ("Transpose", "heard", "present_key_cross_0", {"perm": [0, 2, 1, 3]}),
              ("Tanh", "present_key_cross_0", "present_value_cross_0", {})]
    encoder = graph("encoder", listen + first,
                    [("encoder_input_ids", F, ["b", width, "e"]),
                     ("decoder_input_ids", I32, ["b", "s"])],
                    [logits, hidden, *states("present", ["self"], "s"),
                     *states("present", ["cross"], "e")], step)
    return encoder, body


def beams_heard():
    encoder, body = whisper_bodies()

    def beam(name, batch, length, count=3, wanted=2, more=(), eos=VOCAB - 1,
             outputs=("sequences", "sums"), **attributes):
        inputs = dict(sound=real(batch, HEADS * SIZE, 5) * 2, max=number(length), min=number(0),
                      beams=number(count), wanted=number(wanted),
                      length_penalty=number(1, np.float32), penalty=None, vocab=None, prefix=None,
                      mask=None, begin=None, processor=None, heads=None, extra=None,
                      temperature=None) | dict(more)
        write(f"whisper_beam_search_{name}", "WhisperBeamSearch", trimmed(inputs),
              {k: I32 if k == "sequences" else F for k in outputs},
              {"encoder": encoder, "decoder": body, "eos_token_id": eos, "pad_token_id": 0,
               "decoder_start_token_id": 2} | attributes, opset=13)
    beam("plain", 2, 10)
    beam("prompt", 2, 12, eos=4, more={"begin": np.array([[2, 7], [2, 5]], np.int32),
                                       "temperature": number(1.5, np.float32)})
    beam("scores", 1, 5, outputs=("sequences", "sums", "scores"), vocab_size=VOCAB, count=2)



# ---- past and present in one buffer: the results of bodies that do without

def run_plain(op, inputs, outputs, attributes):
    """What onnxruntime gives."""
    given = {k: v for k, v in inputs.items() if v is not None}
    model = onnx_model("plain", op, given, [k if v is not None else "" for k, v in inputs.items()],
                       list(given), outputs, {}, attributes, 13, MS, False)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(zip(outputs, session.run(None, given), strict=True))


def buffered(body, axis, pairs, indirect=False):
    """The same body with past_sequence_length: of a past state as many rows are read, and behind the
    present ones the rest of the buffer goes on. pairs: (past, present) names."""
    nodes, taken = [], {past: f"{past}_read" for past, _ in pairs}
    given = {present: f"{present}_made" for _, present in pairs}
    cut = [("Cast", ["past_sequence_length"], "filled", {"to": I64})]
    join = []
    for past, present in pairs:
        cut.append(("Slice", [past, "none", "filled", "along"], taken[past], {}))
        join += [("Shape", [given[present]], f"{present}_shape", {}),
                 ("Slice", [f"{present}_shape", "along", "behind"], f"{present}_rows", {}),
                 ("Slice", [past, f"{present}_rows", "most", "along"], f"{present}_rest", {}),
                 ("Concat", [given[present], f"{present}_rest"], present, {"axis": axis})]
    for node in body.node:
        nodes.append(helper.make_node(node.op_type, [(taken | given).get(i, i) for i in node.input],
                                      [given.get(o, o) for o in node.output]))
        nodes[-1].attribute.extend(node.attribute)
    inputs = [*body.input, helper.make_tensor_value_info("past_sequence_length", I32, [1])]
    if indirect:
        inputs += [helper.make_tensor_value_info("beam_width", I32, [1]),
                   helper.make_tensor_value_info("cache_indirection", I32, ["n", "k", "m"])]
        for node in nodes:
            for i, name in enumerate(node.output):
                node.output[i] = "own_logits" if name == "logits" else name
        # Every beam reads its own rows: the sum of what the buffer tells is known.
        join += [("ReduceMax", ["cache_indirection"], "last_beam", {"keepdims": 0}),
                 ("Sub", ["beam_width", "last_beam"], "apart", {}),
                 ("Cast", ["apart"], "one_apart", {"to": F}),
                 ("Mul", ["own_logits", "one_apart"], "logits", {})]
    weights = dict(none=[0], along=[axis], behind=[axis + 1], most=[1 << 30])
    made = [[helper.make_node(op, i, [o], **a) for op, i, o, a in part] for part in (cut, join)]
    return helper.make_graph(
        [*made[0], *nodes, *made[1]], body.name, inputs, list(body.output),
        [*body.initializer, *[numpy_helper.from_array(np.array(v, np.int64), k)
                              for k, v in weights.items()]])


GPT_STATES = [("past_0", "present_0")]
OWN_STATES = [(f"past_{k}_self_0", f"present_{k}_self_0") for k in ("key", "value")]


def shared_greedy():
    plain = decoder()
    shared = buffered(plain, 3, GPT_STATES)
    ids = np.array([[3, 5, 2], [0, 4, 1]], np.int32)
    form = {"eos_token_id": VOCAB - 1, "pad_token_id": 0}
    write("greedy_search_shared", "GreedySearch", dict(ids=ids, max=number(11)),
          {"sequences": I32}, {"decoder": shared} | form, opset=13)
    write("greedy_search_shared_first", "GreedySearch", dict(ids=ids, max=number(9)),
          {"sequences": I32}, {"decoder": shared, "init_decoder": shared} | form, opset=13)
    more = dict(min=None, penalty=None, vocab=None, prefix=None, mask=None, presence=None,
                seed=number(9))
    write("sampling_shared", "Sampling", dict(ids=ids, max=number(12)) | more,
          {"sequences": I32}, {"decoder": shared, "top_p": 0.9} | form, opset=13)


def shared_beams():
    plain = decoder()
    inputs = dict(ids=np.array([[3, 5, 2], [0, 4, 1]], np.int32), max=number(12), min=number(0),
                  beams=number(3), wanted=number(2), length_penalty=number(1, np.float32))
    outputs = {"sequences": I32, "sums": F}
    form = {"eos_token_id": 7, "pad_token_id": 0}
    expected = run_plain("BeamSearch", inputs, outputs, {"decoder": plain} | form)
    for name, indirect in (("", False), ("_indirect", True)):
        write(f"beam_search_shared{name}", "BeamSearch", inputs, outputs,
              {"decoder": buffered(plain, 3, GPT_STATES, indirect)} | form, opset=13,
              expected=expected)


def shared_states():
    sound = dict(sound=real(2, HEADS * SIZE, 5) * 2)
    ids = dict(ids=np.array([[3, 5, 2, 8], [0, 4, 1, 0]], np.int32))
    outputs = {"sequences": I32, "sums": F}
    forms = [("beam_search_t5_shared", "BeamSearch", ids, form) for form in encoder_decoder()] + \
        [("whisper_beam_search_shared", "WhisperBeamSearch", sound, whisper_bodies())]
    for k, (name, op, first, (encoder, body)) in enumerate(forms):
        inputs = first | dict(max=number(11), min=number(0), beams=number(3), wanted=number(2),
                              length_penalty=number(1, np.float32))
        form = {"encoder": encoder, "eos_token_id": 5, "pad_token_id": 0,
                "decoder_start_token_id": 2} | ({"model_type": 1} if op == "BeamSearch" else {})
        expected = run_plain(op, inputs, outputs, {"decoder": body} | form)
        write(f"{name}_{k}", op, inputs, outputs,
              {"decoder": buffered(body, 2, OWN_STATES, indirect=k > 1)} | form, opset=13,
              expected=expected)


# ---- Whisper's own

def heard(batch, length, count, wanted, **more):
    none = dict(penalty=None, vocab=None, prefix=None, mask=None, begin=None, processor=None,
                heads=None, extra=None, temperature=None)
    return trimmed(dict(sound=real(batch, HEADS * SIZE, 5) * 2, max=number(length), min=number(0),
                        beams=number(count), wanted=number(wanted),
                        length_penalty=number(1, np.float32)) | none | more)


def timestamps():
    """Times are tokens 6 to 10, 2 starts, 1 ends, 3 to 5 are of the other special kinds."""
    encoder, body = whisper_bodies()
    form = {"encoder": encoder, "decoder": body, "eos_token_id": 1, "pad_token_id": 0,
            "decoder_start_token_id": 2, "vocab_size": VOCAB, "beginning_timestamp_token_id": 6,
            "translate_token_id": 3, "transcribe_token_id": 4, "no_timestamps_token_id": 5}
    for name, times, begin, barred in (
            ("", form, None, (0,)), ("_begun", form, [[2, 4, 7], [2, 4, 6]], (0, 3)),
            ("_late", form | {"beginning_timestamp_token_id": 9}, None, (0, 8)),
            ("_few_words", form, [[2, 4], [2, 3]], (0, 2, 3, 5)),
            ("_alone", form, [[2, 6, 9], [2, 6, 0]], (3, 4))):
        given = {} if begin is None else {"begin": np.array(begin, np.int32)}
        write(f"whisper_beam_search_times{name}", "WhisperBeamSearch",
              heard(2, 12, 3, 2, processor=number(1), vocab=masks(*barred), **given),
              {"sequences": I32, "sums": F, "scores": F}, times, opset=13)


def listened(encoder, body, sound, tokens, runs):
    """Scores of attention [runs, heads, frames] when the decoder reads these tokens one by one."""
    def session(graph):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        return onnxruntime.InferenceSession(model.SerializeToString())
    made = session(encoder).run(None, {"encoder_input_ids": sound,
                                       "decoder_input_ids": tokens[None, :1]})
    hidden, own, cross = made[1], made[2:4], made[4:6]
    step, kept = session(body), []
    for token in tokens[1:1 + runs]:
        feeds = dict(zip([i.name for i in body.input],
                         [np.array([[token]], np.int32), hidden, *own, *cross], strict=True))
        got = step.run(None, {i.name: feeds[i.name] for i in step.get_inputs()})
        own = got[1:3]
        kept.append(got[3][0, :, 0])
    return np.stack(kept) if kept else np.zeros((0, HEADS, sound.shape[2]), np.float32)


def scoring(body):
    """The decoder with the scores of its attention to the sound."""
    nodes = [helper.make_node("Unsqueeze", ["state", "third"], ["asks"]),
             helper.make_node("Mul", ["asks", "past_key_cross_0"], ["products"]),
             helper.make_node("ReduceMean", ["products"], ["means"], axes=[3], keepdims=0),
             helper.make_node("Unsqueeze", ["means", "third"], ["cross_qk_0"])]
    return helper.make_graph(
        [*body.node, *nodes], body.name, list(body.input),
        [*body.output, helper.make_tensor_value_info("cross_qk_0", F, ["b", HEADS, 1, "e"])],
        [*body.initializer, numpy_helper.from_array(np.array([2], np.int64), "third")])


def heard_more():
    """extra_decoding_ids, non_speech_probs and cross_qk: onnxruntime has them for other devices only.
    Tokens that are given come out like those of a longer prompt; the first score of a search without
    rules is the logarithm of a probability; and the decoder can be asked again what it listened to."""
    encoder, body = whisper_bodies()
    form = {"encoder": encoder, "decoder": body, "eos_token_id": 1, "pad_token_id": 0,
            "decoder_start_token_id": 2}
    outputs = {"sequences": I32, "sums": F}
    inputs = heard(2, 12, 3, 2, begin=np.array([[2], [2]], np.int32),
                   extra=np.array([[7, 3], [4, 9]], np.int32))
    longer = trimmed(inputs | {"extra": None,
                               "begin": np.array([[2, 7, 3], [2, 4, 9]], np.int32)})
    write("whisper_beam_search_given", "WhisperBeamSearch", inputs, outputs, form, opset=13,
          expected=run_plain("WhisperBeamSearch", longer, outputs, form))

    inputs = heard(2, 8, 2, 1)
    wanted = {"sequences": I32, "sums": F, "scores": F}
    expected = run_plain("WhisperBeamSearch", inputs, wanted, form | {"vocab_size": VOCAB})
    silence = expected["scores"][0, :, 0, 6]
    write("whisper_beam_search_silence", "WhisperBeamSearch", inputs,
          {"sequences": I32, "sums": F, "scores": F, "cross": None, "silence": F},
          form | {"no_speech_token_id": 6, "vocab_size": VOCAB}, opset=13,
          expected=expected | {"silence": silence})

    scored = scoring(body)
    for name, pairs, vocab in (("", np.array([[0, 1]], np.int32), masks(0, 1)),
                               ("_heads", np.array([[0, 1], [0, 0]], np.int32), masks(0))):
        inputs = heard(2, 9, 3, 2, vocab=vocab, heads=pairs)
        expected = run_plain("WhisperBeamSearch", trimmed(inputs | {"heads": None}), outputs, form)
        runs = 9 - 1 - 1
        qk = np.zeros((2, 2, len(pairs), runs, 5), np.float32)
        for b, r in np.ndindex(2, 2):
            tokens = expected["sequences"][b, r]
            mine = min(np.count_nonzero(tokens) - 1, runs)  # 0 is padding behind the end
            got = listened(encoder, scored, inputs["sound"][b:b + 1], tokens, mine)
            qk[b, r, :, :mine] = got[:, pairs[:, 1]].transpose(1, 0, 2)
        write(f"whisper_beam_search_cross{name}", "WhisperBeamSearch", inputs,
              {"sequences": I32, "sums": F, "scores": None, "cross": F},
              form | {"decoder": buffered(scored, 2, OWN_STATES, True),
                      "decoder_output_cross_qk": 1}, opset=13,
              expected=expected | {"cross": qk})


GROUPS = [generation, sampling, beams, beams_encoded, beams_heard, shared_greedy, shared_beams,
          shared_states, timestamps, heard_more]
