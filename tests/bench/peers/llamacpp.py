"""llama.cpp: decoders of LLaMA's and GPT-2's kind, in the form of gguf_file.py.

What came before the tokens is put into the engine's own cache, whose float16 is its default: tokens
are decoded until it has the right size, and the keys and values of its saved state are replaced by
the ONNX model's. State: 8 bytes, then keys of each layer, then values, behind headers of 12 bytes;
values lie by rows, or by columns where attention isn't one step. Logits are all that it gives.
"""
import ctypes

import llama_cpp as engine
import numpy as np

from peers import forms

SEQUENCE, ROOM, HEADER, BATCH = 0, 8, 12, 512
F16 = 1


def paired(keys):
    """Halves of a head in llama.cpp's order, neighbours: gguf_file.py does so with their weights."""
    count, heads, size = keys.shape
    return keys.reshape(count, heads, 2, size // 2).swapaxes(2, 3).reshape(keys.shape)


def past_of(inputs):
    """Keys and values of each layer, [positions, heads, size]."""
    names = [n for n in inputs if n.startswith("past_k_")]
    keys = [inputs["past_k_%d" % k][0].swapaxes(0, 1) for k in range(len(names))]
    values = [inputs["past_v_%d" % k][0].swapaxes(0, 1) for k in range(len(names))]
    return keys, values


def quiet(level, text, data):
    """Warnings go nowhere."""


class Session:
    def __init__(self, path, threads):
        self.log = engine.llama_log_callback(quiet)
        engine.llama_log_set(self.log, None)
        engine.llama_backend_init()
        settings = engine.llama_model_default_params()
        self.model = engine.llama_model_load_from_file(str(path).encode(), settings)
        if not self.model:
            raise RuntimeError("llama.cpp doesn't load its form of the model")
        self.threads = threads

    def bind(self, inputs):
        self.tokens = np.ascontiguousarray(inputs["input_ids"][0], np.int32)
        keys, values = past_of(inputs)
        if engine.llama_model_rope_type(self.model) == engine.LLAMA_ROPE_TYPE_NORM:
            keys = [paired(k) for k in keys]
        self.past = len(keys[0])
        self.context = self.new_context()
        self.memory = engine.llama_get_memory(self.context)
        if self.past:
            self.decode(self.batch_of(np.zeros(self.past, np.int32), 0))
            self.replace_past(keys, values)
        self.batch = self.batch_of(self.tokens, self.past)

    def new_context(self):
        settings = engine.llama_context_default_params()
        settings.n_ctx = self.past + len(self.tokens) + ROOM
        settings.n_batch = settings.n_ubatch = max(BATCH, settings.n_ctx)
        settings.n_threads = settings.n_threads_batch = self.threads
        context = engine.llama_init_from_model(self.model, settings)
        if not context:
            raise RuntimeError("llama.cpp makes no context")
        return context

    def batch_of(self, tokens, start):
        """Tokens at positions from `start` on, each with its logits."""
        batch = engine.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for k, token in enumerate(tokens):
            batch.token[k], batch.pos[k], batch.logits[k] = int(token), start + k, 1
            batch.n_seq_id[k], batch.seq_id[k][0] = 1, SEQUENCE
        return batch

    def decode(self, batch):
        if engine.llama_decode(self.context, batch):
            raise RuntimeError("llama.cpp can't decode")

    def replace_past(self, keys, values):
        size = engine.llama_state_seq_get_size(self.context, SEQUENCE)
        state = np.zeros(size, np.uint8)
        where = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        engine.llama_state_seq_get_data(self.context, where, size, SEQUENCE)
        length = sum(HEADER + 2 * a.size for a in keys + values)
        by_columns, layers = state[-length - 8:][:8].view(np.uint32)
        if layers != len(keys):
            raise RuntimeError("llama.cpp's state has another form")
        at = len(state) - length
        for k, array in enumerate(keys + values):
            rows = array.reshape(self.past, -1).astype(np.float16)
            if state[at:at + 4].view(np.int32)[0] != F16:
                raise RuntimeError("llama.cpp's state isn't of float16")
            rows = rows.T if by_columns and k >= layers else rows
            data = np.frombuffer(np.ascontiguousarray(rows).tobytes(), np.uint8)
            state[at + HEADER:][:len(data)] = data
            at += HEADER + len(data)
        if engine.llama_state_seq_set_data(self.context, where, size, SEQUENCE) != size:
            raise RuntimeError("llama.cpp doesn't take its state back")

    def run(self):
        self.decode(self.batch)
        self.logits = engine.llama_get_logits(self.context)

    def release(self):
        engine.llama_memory_seq_rm(self.memory, SEQUENCE, self.past, -1)

    def outputs(self):
        words = engine.llama_vocab_n_tokens(engine.llama_model_get_vocab(self.model))
        return {0: np.ctypeslib.as_array(self.logits, (1, len(self.tokens), words)).copy()}


def open(folder, threads):
    with forms.written(folder, "gguf_file.py", "gguf") as path:
        return Session(path, threads)
