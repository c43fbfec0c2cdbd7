/* budget.h - what a piece of work may use: bytes, time, steps of computing ahead, and the token
 * that cancels it.
 *
 * Loading, checking, inferring, rewriting and preparing a model, and running it, each begin a
 * budget on the stack of their outermost call. From there to its end the thread that works, and
 * those of the pool that help it, find it without being told: infer functions, operators' loops and
 * the allocator lie too deep to hand it to each. Nobody computes with it: it only stops work.
 *
 *   bytes  an account, that arenas, values and the blocks of runs charge while a budget is current
 *          and refund when they are freed, whoever frees them: it is counted by references
 *   time   a deadline and a token. ort_budget_check at each node and step; ort_pace in loops whose
 *          length attributes or values say. Both stay said once they were (`stopped`): what was cut
 *          short is never taken for a result, since whoever began asks again when it is done
 *   work   what is computed ahead of any run (folding, inference) is also limited in steps, which
 *          are the same on every machine, as a folded file must be
 *
 * Without limits nothing is current, and all of this costs a look at one pointer. */
#ifndef ORT_BASE_BUDGET_H
#define ORT_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ort.h"

struct ort_cancel {
    atomic_int set;
};

static inline bool ort_cancel_is_set(const ort_cancel *cancel)
{
    return cancel && atomic_load_explicit(&cancel->set, memory_order_relaxed);
}

/* ---- bytes */

typedef struct ort_account ort_account;

/* limit_bytes 0: none. `whose`, for messages: "of a run". What is charged to it is charged to
 * `outer` as well, which may refuse it too; NULL: none. NULL: no memory. */
ort_account *ort_account_new(size_t limit_bytes, const char *whose, ort_account *outer);
ort_account *ort_account_retain(ort_account *account); /* NULL is fine, as in all of these */
void ort_account_release(ort_account *account);
/* False when it would pass the limit: then nothing is charged. */
bool ort_account_charge(ort_account *account, size_t bytes);
void ort_account_refund(ort_account *account, size_t bytes);
/* Hand so many bytes, charged to `account`, to the one around it: what is returned, with a
 * reference, holds them from now on. NULL: nobody does. */
ort_account *ort_account_hand_out(ort_account *account, size_t bytes);
/* What is held beyond the allowance. */
size_t ort_account_excess(const ort_account *account);
/* ORT_ERROR_MEMORY that names the limit. */
ort_status ort_account_refuse(const ort_account *account, size_t bytes, const char *what,
                              ort_error *err);

/* Memory of the present work outside of arenas and values, charged while it is held. */
void *ort_work_malloc(size_t bytes);
void *ort_work_calloc(size_t count, size_t bytes);
void ort_work_free(void *memory);

/* ---- time and work */

/* What a caller set for all that is done with its models; zero: the defaults. */
typedef struct ort_limits {
    size_t memory_bytes; /* 0: ORT_LOAD_BYTES while loading, none for runs and what they need */
    double timeout_s;    /* of each call; 0: none */
    const ort_cancel *cancel; /* or NULL */
    ort_account *whole;  /* of all models, sessions and runs together; NULL: each for itself */
} ort_limits;

/* Loading, checking, rewriting and folding without a limit of the caller's; what the allocator's
 * own structures add keeps a file below 1 MB within 1 GB. */
#define ORT_LOAD_BYTES ((size_t)512 << 20)
/* What a load may always hold, however low the limit: names, nodes and tables of small models. */
#define ORT_LOAD_ALLOWED ((size_t)16 << 20)
/* Bytes that a load may hold for each byte of the model's files: weights aligned, packed, and in
 * the forms that passes give them. */
#define ORT_LOAD_PER_FILE_BYTE 4
/* Steps of computing ahead in one call: a few seconds of the scalar tier. */
#define ORT_LOAD_WORK ((uint64_t)1 << 31)

typedef struct ort_budget {
    ort_account *account;   /* NULL: bytes aren't counted */
    uint64_t deadline_ns;   /* 0: none */
    double timeout_s;       /* for the message */
    const ort_cancel *cancel;
    bool is_ahead;          /* of what is computed ahead: who asks for it can do without */
    uint64_t work_limit;    /* of steps; 0: none */
    _Atomic uint64_t work;  /* steps so far */
    _Atomic uint64_t ahead; /* steps of what was computed ahead, in budgets of its own */
    atomic_int stopped;     /* why all of it must end: an ort_status, kept; ORT_OK: go on */
    struct ort_budget *outer;
} ort_budget;

/* The budget of the work that this thread does, or NULL. */
ort_budget *ort_budget_current(void);
/* Make it current; NULL: none. Returns what was. */
ort_budget *ort_budget_swap(ort_budget *budget);
/* Begin work: *budget becomes current, within the limits of the one that was, if any. account NULL:
 * that of the outer one. timeout_s 0 or too long to count: none. */
void ort_budget_begin(ort_budget *budget, ort_account *account, double timeout_s,
                      const ort_cancel *cancel);
/* The same for what is computed ahead: at most the steps that the outer budget has left. */
void ort_budget_begin_ahead(ort_budget *budget);
/* The one before is current again. Of a failure it says why the work was stopped, if it was. */
ort_status ort_budget_end(ort_budget *budget, ort_status status, ort_error *err);
/* Must the work stop? Looks at token and clock. */
bool ort_budget_over(ort_budget *budget);
/* The same of the current one, as an error: ORT_ERROR_CANCELLED, _TIMEOUT, or _UNSUPPORTED for
 * what is too much to compute ahead. */
ort_status ort_budget_check(ort_error *err);
/* Was it stopped already? Looks at no clock. */
ort_status ort_budget_stopped(const ort_budget *budget, ort_error *err);
/* Count steps of work; true when it must stop. */
bool ort_budget_spend(uint64_t steps);

/* ---- loading */

/* What a call that loads, checks, rewrites or prepares a model works under. */
typedef struct ort_loading {
    ort_budget budget;
    ort_account *account;
} ort_loading;

/* For ort_limits.whole: what it may always hold is small models' due. NULL: no memory. */
ort_account *ort_account_new_whole(size_t limit_bytes);
/* `account`: of a model that is there already; NULL: that of the call around this one, or a new
 * one. NULL limits: the defaults. */
ort_status ort_loading_begin(ort_loading *loading, const ort_limits *limits, ort_account *account,
                             ort_error *err);
/* The same for something new made of what holds `account` (a session of a model): an account of its
 * own, in which what is held already counts. */
ort_status ort_loading_begin_apart(ort_loading *loading, const ort_limits *limits,
                                   const ort_account *account, ort_error *err);
ort_status ort_loading_end(ort_loading *loading, ort_status status, ort_error *err);
/* What is made from here on is what runs of the model need (packed weights, plans), and runs have
 * no limit but the caller's: without one, only what is computed ahead keeps to that of loading, and
 * is left to the run when it doesn't fit. */
void ort_loading_leave_to_runs(const ort_limits *limits);
/* The account that this thread's work charges, with a reference; or NULL. */
ort_account *ort_account_of_work(void);
/* The account of all work together that it lies in, with a reference; or NULL. */
ort_account *ort_account_whole_of_work(void);
/* A model of so many bytes in files is being loaded. */
void ort_loading_allow_file(size_t bytes);

/* ---- loops
 *
 * In every loop whose count comes from attributes or values, and not from the elements of tensors
 * that exist already:
 *
 *     ort_pace pace = {0};
 *     for (...)
 *         if (ort_pace_over(&pace, STEPS_OF_ONE_ROUND))
 *             return ...;       of a task: just return, the executor says why
 */
typedef struct ort_pace {
    uint64_t steps; /* since the last look */
    bool over;      /* said once, and from then on */
} ort_pace;

/* An estimate of steps as a number of them. */
static inline uint64_t ort_steps_of(double estimate)
{
    return estimate < 1e18 ? estimate > 0 ? (uint64_t)estimate : 0 : (uint64_t)1000000000000000000;
}

enum { ORT_PACE_STEPS = 1 << 16 }; /* between two looks at the clock: tens of microseconds */

static inline bool ort_pace_over(ort_pace *pace, uint64_t steps)
{
    pace->steps += steps;
    if (pace->steps < ORT_PACE_STEPS)
        return pace->over;
    uint64_t spent = pace->steps;
    pace->steps = 0;
    return pace->over = pace->over || ort_budget_spend(spent);
}

#endif
