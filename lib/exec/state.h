/* state.h - what a run leaves to the next one. A state is an input of the model together with the
 * output that is the input's next value.
 *
 * A state is handed over or grows. Handed over, the output of one run becomes the input of the next
 * one by reference. A growing state is a cache (ort_growth): its rows lie in one memory that has
 * room for more behind them. The run's input and output are then two views of that memory, with the
 * strides of a tensor of `room` rows, and the step that extends the cache writes nothing but the
 * new rows. When a plan has no place for a growing state, the state is handed over from then on.
 */
#ifndef ORT_EXEC_STATE_H
#define ORT_EXEC_STATE_H

#include "exec/buffers.h"
#include "exec/plan.h"

struct ort_session;

typedef struct ort_state {
    int input, output;        /* of the session */
    const ort_growth *growth; /* of the session's program; NULL: handed over */
    ort_value *start;         /* what it starts over from; NULL: empty. A reference */
    bool started;             /* no: `value` is of before the start to come */
    ort_value *value;         /* what the next run takes. Growing: the rows so far */
    ort_value *shown;         /* growing: the rows as a plain tensor, made when somebody asks */
    int64_t stride[ORT_MAX_RANK]; /* of `value` and `present` */
    ort_tensor present;       /* growing: the output of the run at hand */
    size_t bytes;             /* growing: of the memory, accounted with the context's buffers */
} ort_state;

typedef struct ort_states {
    const struct ort_session *session;
    ort_buffers *buffers;
    ort_state **data;
    int count;
    int64_t reserved; /* rows that new memory of growing states has room for, at least */
} ort_states;

void ort_states_release(ort_states *states);
/* The state whose input or output it is, or NULL. */
ort_state *ort_states_of_input(const ort_states *states, int input);
ort_state *ort_states_of_output(const ort_states *states, int output);
/* A new one, empty. ORT_ERROR_USAGE when input or output belong to a state already, or when their
 * types can't be one. */
ort_status ort_states_add(ort_states *states, int input, int output, ort_error *err);

/* Before a run: value of every state that starts over now. inputs: of the session, for the sizes of
 * empty states. */
ort_status ort_states_begin(ort_states *states, ort_value *const *inputs, ort_error *err);
/* Once a plan of `program` is found (NULL: before one is looked for): make `present` of growing
 * states. *moved: values have other strides now; another plan must be looked for. */
ort_status ort_states_fit(ort_states *states, const ort_program *program, const ort_plan *plan,
                          bool *moved, ort_error *err);
/* After a run that went well: takes the outputs of states from `outputs` (of the session), where it
 * leaves what the next run may write them into. */
void ort_states_end(ort_states *states, ort_value **outputs);
/* The value that the state's output had in the last run, as a plain value. Borrowed; NULL: no run
 * since it started over, or no memory. */
ort_value *ort_state_show(ort_state *state);

#endif
