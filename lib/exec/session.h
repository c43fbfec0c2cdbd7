/* session.h - a model made ready to run. Immutable once made, but for the idle contexts under a
 * lock.
 */
#ifndef ORT_EXEC_SESSION_H
#define ORT_EXEC_SESSION_H

#include "kernel/extremes.h"
#include "exec/frame.h"
#include "exec/spares.h"
#include "exec/state.h"
#include "io/source.h"
#include "provider/partition.h"

typedef struct ort_port { /* an input or output as callers see it */
    const char *name;
    const char *type_text; /* that of `info` */
    const ort_type_info *info;
    ort_type type;
    ort_id id;
    const ort_tensor *default_value; /* NULL: must be given */
} ort_port;

typedef struct ort_phase {
    char name[40];
    uint64_t ns;
    int changes; /* of a pass; -1 for other phases */
} ort_phase;

#define ORT_IDLE_CONTEXTS 16

struct ort_session {
    const ort_env *env;
    ort_env *own_env; /* with threads of its own; or NULL */
    ort_model *model; /* ours: loaded for the session, or a clone */
    ort_arena memory; /* names, ports; states and packed weights lie in the model's arena, so that
                         both fill the same pages */
    size_t prepared_bytes; /* of states and packed weights */
    ort_account *account; /* of all that making it took and that it holds; or NULL */
    ort_program *program;
    ort_partition partition;
    ort_port *inputs, *outputs;
    int input_count, output_count;
    const ort_tensor **defaults; /* per program input */
    /* what the program takes: all inputs, or those without a default */
    ort_id *input_ids;
    int program_input_count;
    int *program_inputs;         /* their places among `inputs` */
    bool keep_all;
    bool watches;       /* on_value is called with what outputs and watched values become */
    bool any_order;     /* ... of which watched values may have their numbers in another order */
    /* ... and this in place of on_value where a value's ends were found while it was written
     * (seen.h), in sessions of one run at a time; or NULL */
    void (*on_extremes)(void *arg, const char *name, const ort_extremes *found);
    bool shows_outputs; /* on_value is called with outputs alone: all values that the model has */
    bool has_scalars; /* an input of rank 0: a run may feed it one element of another rank */
    /* Inputs with defaults are constants here; a run that overrides one goes to `general`, which is
     * made from `pristine` when it is first needed. */
    bool assumes_defaults;
    ort_model *pristine;
    ort_source origin; /* of a session from a pack: what `pristine` is read from */
    ort_session_options options;
    ort_session *general;
    /* Devices may fail: the list names the host and doesn't insist. `host`: of `pristine`, once
     * one failed (fallback.c). */
    bool falls_back;
    ort_session *host;
    ORT_VEC(ort_phase) phases;
    ort_spares *spares; /* of results, or NULL */
    pthread_mutex_t lock;
    ort_context *idle[ORT_IDLE_CONTEXTS];
    int idle_count;
};

typedef struct ort_session_parts { /* what a session is made of */
    ort_env *env;
    ort_model *model; /* taken: freed with the session, and on failure */
    const ort_session_options *options; /* NULL: the defaults */
    uint64_t load_ns; /* time that was spent loading the model */
    /* Collects the session's packed constants, or has those of a pack (exec/packing.h). Then the
     * model is the pack's graph, for which no pass runs; NULL: neither. */
    struct ort_packing *packing;
    ort_source *origin; /* of the file beside a pack: what it holds is taken */
    bool any_order;     /* of ort_session */
} ort_session_parts;

ort_status ort_exec_session_make(const ort_session_parts *parts, ort_session **session,
                                 ort_error *err);
/* Of a copy of `model`, under its limits and an account of its own. */
ort_status ort_exec_session_new(ort_env *env, const ort_model *model,
                                const ort_session_options *options, ort_session **session,
                                ort_error *err);
/* The same, for who watches values and takes their numbers in any order. */
ort_status ort_exec_session_watching(ort_env *env, const ort_model *model,
                                     const ort_session_options *options, ort_session **session,
                                     ort_error *err);
void ort_exec_session_release(ort_session *session);
/* The session of the pack beside a model file; NULL when there is none or it doesn't fit, of which
 * the log then has a line (pack_load.c). */
ort_status ort_exec_session_beside(ort_env *env, const char *path,
                                   const ort_session_options *options, ort_session **session,
                                   ort_error *err);
/* Save a model with a pack beside it, for default options (pack_save.c). */
ort_status ort_exec_save_packed(ort_env *env, ort_model *model, const char *path,
                                const ort_save_options *options, ort_error *err);
/* The session that lets a run override defaults. Borrowed. */
ort_status ort_exec_session_general(const ort_session *session, ort_session **general,
                                    ort_error *err);

/* fallback.c: does a device that fails leave the session to the host; that session, or NULL while
 * none did. */
bool ort_exec_falls_back(const ort_session *session);
ort_session *ort_exec_session_host(const ort_session *session);
/* Make it, with a warning that says why. Borrowed. */
ort_status ort_exec_fall_back(const ort_session *session, const char *why, ort_session **host,
                              ort_error *err);

/* context.c: one for runs of this session, under its limits. */
ort_status ort_context_new(const ort_session *session, ort_context **context, ort_error *err);
void ort_context_free(ort_context *context);

/* plan_ahead.c: a context with the frame of the first run, where all shapes are fixed. */
void ort_exec_plan_ahead(ort_session *session);

/* named.c: the input or output of this name; looks at `hint` first. */
ort_status ort_exec_find_port(const ort_port *ports, int count, const char *what, const char *name,
                              int hint, int *index, ort_error *err);
/* ORT_ERROR_USAGE unless the caller's array of inputs or outputs is as long as the session's. */
ort_status ort_exec_check_count(int count, const char *what, size_t given, ort_error *err);
/* The mask of the options: NULL for all outputs. */
ort_status ort_exec_wanted(const ort_session *session, const ort_run_options *options,
                           const bool **wanted, ort_error *err);
/* In a context of the session: inputs, outputs and wanted as in ort_execution. Options are known.
 */
ort_status ort_exec_run_once(const ort_session *session, ort_value *const *inputs,
                             ort_value **outputs, const bool *wanted,
                             const ort_run_options *options, ort_error *err);
/* All inputs in order, all outputs. */
static inline ort_status ort_session_run_all(const ort_session *session, ort_value *const *inputs,
                                             ort_value **outputs, const ort_run_options *options,
                                             ort_error *err)
{
    return ort_exec_run_once(session, inputs, outputs, NULL, options, err);
}

/* inputs.c: ORT_OK when these values fit the session's inputs. */
ort_status ort_exec_check_inputs(const ort_session *session, ort_value *const *inputs,
                                 ort_error *err);

/* made_up_sizes.c: a shape for every input, free axes chosen by the rule of made-up inputs. */
void ort_exec_choose_shapes(const ort_session *session, ort_shape *shapes);
bool ort_exec_has_free_dims(const ort_session *session);
/* random_inputs.c: made-up inputs; variant and trial choose other sizes where axes are free
 * (made_up.h). */
ort_status ort_exec_make_inputs(const ort_session *session, uint64_t seed, int variant, int trial,
                                ort_value **inputs, ort_error *err);

/* execute.c */
typedef struct ort_execution {
    const ort_session *session;
    ort_context *context;
    ort_value *const *inputs;
    ort_value **outputs; /* NULL entries become new values */
    const bool *wanted;  /* per output; NULL: all. The others' entries stay as they are */
    /* per output: a value of another shape is replaced, not refused; or NULL */
    const bool *reuse;
    /* per output: where a new value of it is made; NULL, and an entry that is: on the host */
    ort_device *const *devices;
    ort_value *const *origins; /* `inputs`, where these are stand-ins (away.h); or NULL */
    ort_states *states; /* their inputs are in `inputs`; or NULL */
    const ort_run_options *options;
} ort_execution;
ort_status ort_exec_run(ort_execution *execution, ort_error *err);

typedef struct ort_result { /* what this run notes of an output */
    ort_value *temporary; /* where it is written first, or NULL */
    bool own;             /* the run made its value */
} ort_result;

#endif
