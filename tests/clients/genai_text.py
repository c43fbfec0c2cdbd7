"""Text by onnxruntime-genai: ROOT MODEL [KEY=VALUE...], a folder with a byte-level LLaMA and entries of the session's
configuration; prints what greedy search writes."""
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime_genai as og

PROMPT, NEW = b"The import statement", 120
ENTRIES = dict(entry.split("=") for entry in sys.argv[3:])
CONFIG = {
    "model": {"type": "llama", "vocab_size": 256, "context_length": 512, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
              "decoder": {"filename": "model.onnx", "head_size": 48, "hidden_size": 192, "num_attention_heads": 4,
                          "num_key_value_heads": 2, "num_hidden_layers": 4, "session_options": {"intra_op_num_threads": 1} | ENTRIES,
                          "inputs": {"input_ids": "input_ids", "position_ids": "position_ids", "past_key_names": "past_k_%d",
                                     "past_value_names": "past_v_%d"},
                          "outputs": {"logits": "logits", "present_key_names": "present_k_%d",
                                      "present_value_names": "present_v_%d"}}},
    "search": {"max_length": 512, "do_sample": False, "past_present_share_buffer": False}}

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "model.onnx").symlink_to(pathlib.Path(sys.argv[2]) / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(CONFIG))
    model = og.Model(name)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(PROMPT) + NEW, do_sample=False)
    generator = og.Generator(model, params)
    generator.append_tokens(np.array([list(PROMPT)], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    print(bytes(int(token) for token in generator.get_sequence(0)))
