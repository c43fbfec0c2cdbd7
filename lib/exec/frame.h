/* frame.h - everything that a run changes: values, the arena, and calls with their pointers
 * resolved.
 *
 * A slot holds what operators see of a value: a view that lies in the frame and that operators
 * never free. The view shows the arena, memory of the caller, a constant, a block of the run, or a
 * value that is held by reference. Its release function tells a view from a value. Whoever wants to
 * keep a value calls ort_frame_own, which gives a reference that outlives the frame, and copies the
 * data where the frame holds no reference.
 *
 * A frame belongs to one run at a time. The frames of bodies hang below the frame that runs the
 * control-flow step; they are kept for the next iteration.
 */
#ifndef ORT_EXEC_FRAME_H
#define ORT_EXEC_FRAME_H

#include "base/mt19937.h"
#include "base/pool.h"
#include "exec/buffers.h"
#include "exec/plan.h"

typedef struct ort_frame ort_frame;
typedef struct ort_sights ort_sights; /* seen.h */
struct ort_loan; /* away.h */

typedef struct ort_frames { /* kept frames, most recently used first */
    ort_frame *first;
} ort_frames;

/* What an outermost run and all its bodies share. */
typedef struct ort_context {
    const ort_env *env;
    const ort_call_services *services; /* what its running operators may ask for */
    const ort_run_options *options; /* of the present run; may be NULL */
    ort_buffers buffers;
    uint64_t random;      /* draws so far */
    ort_mt19937 stream;   /* of all random operators, when the run wants one */
    ort_budget budget;    /* of the present run, while `budgeted` */
    bool watched;         /* cancel, time limit or callbacks: check between steps */
    bool any_order;       /* of the session: who watches doesn't care where a number lies */
    bool budgeted;        /* watched, or its bytes are limited */
    ort_frames frames;
    ort_pool_demand demand; /* of the last run in this context */
    struct ort_result *results; /* [result_count]: what a run notes per output (execute.c) */
    int result_count;
    ort_sights *sights;   /* of one whose session wants extremes; or NULL */
} ort_context;

typedef struct ort_slot {
    ort_value view;       /* first member: a view's address is its slot's */
    ort_value *held;      /* reference that backs the view, or NULL */
    ort_block *block;     /* one reference, or NULL */
    ort_value *origin;    /* the given value, not counted, or NULL */
    bool set;             /* a dynamic output was given by its step */
} ort_slot;

typedef struct ort_twin { /* a value of a frame, on a device (body_run.c) */
    ort_id id;
    bool valid; /* it has this run's elements */
    ort_value *value;
} ort_twin;

typedef struct ort_exec_call {
    ort_call call;
    ort_status (*run)(ort_call *call, ort_error *err);
    ort_frame *frame;
    const ort_plan_step *ps;
    ort_status failure; /* of a service that can't return one */
} ort_exec_call;

struct ort_frame {
    ort_frame *next;
    ort_context *context;
    ort_plan *plan; /* a reference */
    ort_slot *slots;
    ort_exec_call *calls; /* per step of the plan */
    ort_value **pointers; /* in and out lists of all calls */
    char *arena;
    void *devices[ORT_PROVIDERS_MAX]; /* memory and queue of each device that the plan uses */
    ort_arena scratch;    /* dynamic steps: facts, plan states; emptied at the end */
    ort_frames children;
    struct ort_loan *loan; /* values of this run that lie on devices; or NULL */
    bool lent;            /* devices may still use such of a run before */
    ort_frame *outer;     /* of a body: that of the step which runs it */
    ORT_VEC(ort_twin) twins;
    struct ort_loan *own_loan; /* of a body: `loan` while it runs */
    ort_value **made;          /* of a body: two for each output, on devices; in own_loan */
    int made_count;
    bool ahead;           /* made for a first run that hasn't come (plan_ahead.c) */
};

/* The kept frame of `program` that fits these given values and wanted outputs (NULL: all), or a new
 * one. Owned by `frames`. */
ort_status ort_frame_get(ort_context *context, ort_frames *frames, ort_program *program,
                         ort_value *const *given, const bool *wanted, ort_frame **frame,
                         ort_error *err);
void ort_frames_release(ort_frames *frames);
/* Point the slots at this run's given values, and at the memory of direct results. */
void ort_frame_bind_given(ort_frame *frame, ort_value *const *given);
void ort_frame_bind_output(ort_frame *frame, int output, void *data);
/* The same for a cache that grows in place: rows and strides are this run's, too. */
void ort_frame_bind_grown(ort_frame *frame, int output, const ort_tensor *grown);
/* Run all steps. On failure the frame is clean for the next run. */
ort_status ort_frame_run(ort_frame *frame, ort_error *err);
/* The end of a run: dynamic values are dropped. */
void ort_frame_clear(ort_frame *frame);
void ort_slot_drop(ort_slot *slot);
/* Show `value` in the slot; takes the reference. */
void ort_slot_hold(ort_slot *slot, ort_value *value);
bool ort_value_is_view(const ort_value *value);
/* A reference to the value that outlives the frame. */
ort_status ort_frame_own(ort_context *context, ort_value *value, ort_value **owned,
                         ort_error *err);
static inline ort_slot *ort_slot_of(ort_value *view)
{
    return (ort_slot *)(void *)view;
}

/* One step, with nothing around it. */
ort_status ort_frame_run_step(ort_frame *frame, ort_exec_call *c, ort_error *err);
/* dynamic.c: a step whose shapes are found now. */
ort_status ort_frame_run_dynamic(ort_frame *frame, ort_exec_call *c, ort_error *err);
/* services.c: those of every context. They run bodies, so they lie above the loop of run.c. */
extern const ort_call_services ort_exec_services;

#endif
