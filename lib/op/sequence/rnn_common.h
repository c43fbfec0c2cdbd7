/* rnn_common.h - what LSTM, GRU and RNN share: geometry, prepared weights, the typed cores.
 *
 * Names of sizes: T steps, B batch rows, I inputs, H hidden units, G gates (4, 3, 1), D directions.
 * Gate order is ONNX's: LSTM i o f c, GRU z r h.
 */
#ifndef ORT_OP_SEQUENCE_RNN_COMMON_H
#define ORT_OP_SEQUENCE_RNN_COMMON_H

#include "op/op.h"

typedef enum ort_rnn_kind { ORT_RNN_PLAIN = 1, ORT_RNN_GRU = 3, ORT_RNN_LSTM = 4 } ort_rnn_kind;

typedef struct ort_rnn_activation {
    ort_unary function;
    float alpha, beta;
} ort_rnn_activation;

typedef struct ort_rnn_sizes {
    int64_t T, B, I, H;
    int G, D;
} ort_rnn_sizes;

/* Weights of one direction in computing form; `real` is float or double. */
typedef struct ort_rnn_weights {
    const void *w;      /* packed [I][G*H] */
    const void *r;      /* packed [H][G*H], of GRU [H][2*H] */
    const void *rh;     /* GRU: packed [H][H] of the hidden gate */
    const void *bias;   /* real[G*H] */
    const void *rh_bias; /* GRU with linear_before_reset: real[H], else NULL */
    const void *peephole; /* LSTM: real[3*H] in order i o f, or NULL */
} ort_rnn_weights;

typedef struct ort_rnn_core ort_rnn_core;

typedef struct ort_rnn { /* prepared state */
    enum { ORT_RNN_FORWARD, ORT_RNN_REVERSE, ORT_RNN_BOTH } direction;
    ort_strings names; /* of activations */
    ort_floats alphas, betas;
    ort_rnn_kind kind;
    int directions;
    bool reverse;        /* the first direction runs backwards */
    bool batch_first;    /* layout 1 */
    bool coupled;        /* input_forget */
    bool linear_before_reset;
    float clip;          /* 0: none */
    ort_rnn_activation act[2][3];
    const ort_rnn_core *core;
    ort_dtype dtype;
    ort_rnn_sizes sizes; /* I, H, G, D of the constant weights */
    bool constant;       /* weights[] are filled */
    bool late;           /* quantized, but bias or peephole come with each run */
    bool quantized;      /* W and R are constants of 8 bits; DynamicQuantizeLSTM's [D][I][G*H] */
    bool x_coded;        /* X is codes with this scale and zero point */
    bool x_signed;
    uint8_t x_zero;      /* or the bits of an int8 */
    float x_scale;
    ort_rnn_weights weights[2];
} ort_rnn;

/* The tensors that weights are made of; B and P may be NULL. */
typedef struct ort_rnn_source {
    const ort_tensor *W, *R, *B, *P;
    /* Of DynamicQuantizeLSTM's bytes, [D][depth][G*H]: one number per direction, or per column of
     * each. Of codes that lie as floats do: floats [D][G*H], and zero points or NULL. */
    const ort_tensor *w_scale, *w_zero, *r_scale, *r_zero;
    bool x_coded;
} ort_rnn_source;

enum { ORT_RNN_CHUNK = 8 }; /* batch rows that walk through time together */

/* One run: all pointers are of the core's real type. */
typedef struct ort_rnn_run {
    const ort_call *call;
    const ort_rnn *rnn;
    const ort_rnn_weights *weights;
    ort_rnn_sizes s;
    const void *x;
    const ort_tensor *lens;
    void *gates;  /* [D][T*B][G*H] */
    void *h, *c, *spare; /* [D][B][H]: states, set to the initial ones; scratch of GRU */
    void *codes;         /* what core.run_bytes said, or NULL */
    void *y;      /* in the layout of the output, or NULL */
} ort_rnn_run;

struct ort_rnn_core {
    size_t real_bytes;
    /* Memory of the weights of all directions, and scratch for filling it; false on overflow. */
    bool (*weights_bytes)(const ort_kernels *k, const ort_rnn_sizes *s, size_t *bytes,
                          size_t *scratch);
    /* Lays the weights out in `memory`; fills it unless scratch is NULL (it was filled before). */
    void (*weights_fill)(const ort_kernels *k, const ort_rnn *rnn, const ort_rnn_sizes *s,
                         const ort_rnn_source *source, void *memory, void *scratch,
                         ort_rnn_weights *weights);
    /* The bias and the peephole alone, for weights that are packed without. `memory` holds
     * late_bytes. */
    bool (*late_bytes)(const ort_rnn_sizes *s, size_t *bytes);
    void (*late_fill)(const ort_rnn *rnn, const ort_rnn_sizes *s, const ort_rnn_source *source,
                      void *memory, ort_rnn_weights *weights);
    void (*run)(const ort_rnn_run *run);
    /* Memory of a run for the codes of its input, and of each thread; NULL: none. */
    bool (*run_bytes)(const ort_kernels *k, const ort_rnn_sizes *s, size_t *codes, size_t *thread);
    /* One step of one LSTM row: gates real[4 * H] (spoiled), state and cell real[H] (replaced).
     * act: of the direction; peephole: as in ort_rnn_weights. */
    void (*lstm_row)(const ort_kernels *k, const ort_rnn *rnn, const ort_rnn_activation *act,
                     const void *peephole, int64_t H, void *gates, void *state, void *cell);
};

/* rnn.c: the outputs of an operator with the inputs X and R at 0 and 2; what the attributes say, of
 * a state that begins with an ort_rnn, and what follows from it (all up to `core`; kind is set by
 * the caller). */
ort_status ort_rnn_infer(ort_infer *x, ort_error *err);
extern const ort_bind ort_rnn_bind[];
ort_status ort_rnn_settle(const ort_prep *p, ort_rnn *rnn, ort_error *err);

extern const ort_rnn_core ort_rnn_core_f32;
extern const ort_rnn_core ort_rnn_core_f64;
extern const ort_rnn_core ort_rnn_core_bytes; /* float, but for products with 8-bit weights */
extern const ort_rnn_core ort_rnn_core_coded; /* float, of weights that stay in 8 bits */

#endif
