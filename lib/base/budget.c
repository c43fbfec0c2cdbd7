/* budget.c - accounts of bytes, the budget that is current in a thread, and the message about
 * memory that was not to be had: it may be an account that refused it. */
#include "base/budget.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"

struct ort_account {
    atomic_int references;
    _Atomic size_t held, limit, allowed; /* bytes; limit 0: none */
    _Atomic size_t ahead_limit; /* of what is computed ahead, when that alone has one; or 0 */
    _Atomic size_t refused; /* of the last charge that failed and that nobody told of; or 0 */
    const char *whose;
    ort_account *outer; /* with a reference; or NULL */
};

static _Thread_local ort_budget *current;

/* ---- bytes */

ort_account *ort_account_new(size_t limit_bytes, const char *whose, ort_account *outer)
{
    ort_account *account = malloc(sizeof *account);
    if (!account)
        return NULL;
    atomic_init(&account->references, 1);
    atomic_init(&account->held, 0);
    atomic_init(&account->limit, limit_bytes);
    atomic_init(&account->allowed, 0);
    atomic_init(&account->ahead_limit, 0);
    atomic_init(&account->refused, 0);
    account->whose = whose;
    account->outer = ort_account_retain(outer);
    return account;
}

ort_account *ort_account_retain(ort_account *account)
{
    if (account)
        atomic_fetch_add_explicit(&account->references, 1, memory_order_relaxed);
    return account;
}

void ort_account_release(ort_account *account)
{
    while (account && atomic_fetch_sub(&account->references, 1) == 1) {
        ort_account *outer = account->outer;
        free(account);
        account = outer;
    }
}

/* The limit that holds for the work of this thread. */
static size_t limit_of(const ort_account *account)
{
    size_t limit = atomic_load_explicit(&account->limit, memory_order_relaxed);
    return limit || !current || !current->is_ahead
               ? limit
               : atomic_load_explicit(&account->ahead_limit, memory_order_relaxed);
}

static bool fits(size_t limit, size_t held, size_t bytes)
{
    return !limit || (bytes <= limit && held <= limit - bytes);
}

/* The bytes of a charge that failed since the last call; 0: none did. */
static size_t take_refusal(ort_account *account)
{
    return account ? atomic_exchange(&account->refused, 0) : 0;
}

static bool charge_one(ort_account *account, size_t bytes)
{
    size_t limit = limit_of(account);
    size_t held = atomic_load_explicit(&account->held, memory_order_relaxed);
    do {
        if (!fits(limit, held, bytes))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&account->held, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void refund_until(ort_account *account, const ort_account *end, size_t bytes)
{
    for (; account != end; account = account->outer)
        atomic_fetch_sub_explicit(&account->held, bytes, memory_order_relaxed);
}

bool ort_account_charge(ort_account *account, size_t bytes)
{
    for (ort_account *a = account; a; a = a->outer)
        if (!charge_one(a, bytes)) {
            refund_until(account, a, bytes);
            atomic_store(&account->refused, bytes);
            return false;
        }
    return true;
}

void ort_account_refund(ort_account *account, size_t bytes)
{
    refund_until(account, NULL, bytes);
}

ort_account *ort_account_hand_out(ort_account *account, size_t bytes)
{
    if (!account)
        return NULL;
    refund_until(account, account->outer, bytes);
    return ort_account_retain(account->outer);
}

static void allow_one(ort_account *account, size_t bytes)
{
    size_t limit = atomic_load(&account->limit);
    if (bytes > SIZE_MAX / 4)
        bytes = SIZE_MAX / 4;
    atomic_fetch_add(&account->allowed, bytes);
    if (limit)
        atomic_store(&account->limit, limit > SIZE_MAX - bytes ? SIZE_MAX : limit + bytes);
}

/* What doesn't count: the weights of a file and their packed forms. It raises the limit. */
static void account_allow(ort_account *account, size_t bytes)
{
    for (; account; account = account->outer)
        allow_one(account, bytes);
}

static size_t account_held(const ort_account *account)
{
    return account ? atomic_load_explicit(&account->held, memory_order_relaxed) : 0;
}

size_t ort_account_excess(const ort_account *account)
{
    size_t held = account_held(account);
    size_t allowed = account ? atomic_load(&account->allowed) : 0;
    return held > allowed ? held - allowed : 0;
}

ort_status ort_account_refuse(const ort_account *account, size_t bytes, const char *what,
                              ort_error *err)
{
    const ort_account *a = account; /* the one that refuses, or the last */
    while (a->outer && fits(limit_of(a), account_held(a), bytes))
        a = a->outer;
    return ort_error_set(err, ORT_ERROR_MEMORY,
                         "%s needs %zu bytes, %zu are in use, and the limit %s is %zu; raise the "
                         "memory limit or shrink the inputs",
                         what, bytes, account_held(a), a->whose, limit_of(a));
}

ort_status ort_error_memory(ort_error *err, size_t bytes)
{
    const ort_budget *budget = current;
    size_t refused = budget ? take_refusal(budget->account) : 0;
    if (refused) /* a block for it and for more */
        return ort_account_refuse(budget->account, refused, "the next block", err);
    return ort_error_set(err, ORT_ERROR_MEMORY, "out of memory: can't allocate %zu bytes", bytes);
}

typedef struct work_block { /* in front of the memory */
    ort_account *account;
    size_t bytes;
} work_block;

static void *new_block(size_t bytes, bool zeroed)
{
    ort_account *account = current ? current->account : NULL;
    size_t total;
    if (!ort_add_size(bytes, sizeof(work_block), &total) || !ort_account_charge(account, total))
        return NULL;
    work_block *block = zeroed ? calloc(1, total) : malloc(total);
    if (!block) {
        ort_account_refund(account, total);
        return NULL;
    }
    *block = (work_block){ort_account_retain(account), total};
    return block + 1;
}

void *ort_work_malloc(size_t bytes)
{
    return new_block(bytes, false);
}

void *ort_work_calloc(size_t count, size_t bytes)
{
    size_t total;
    return ort_mul_size(count, bytes, &total) ? new_block(total, true) : NULL;
}

void ort_work_free(void *memory)
{
    if (!memory)
        return;
    work_block *block = (work_block *)memory - 1;
    ort_account_refund(block->account, block->bytes);
    ort_account_release(block->account);
    free(block);
}

/* ---- time and work */

ort_budget *ort_budget_current(void)
{
    return current;
}

ort_budget *ort_budget_swap(ort_budget *budget)
{
    ort_budget *before = current;
    current = budget;
    return before;
}

/* When so many seconds from now will be over; 0: never, also for what no clock reaches. */
static uint64_t deadline_after(double seconds)
{
    uint64_t now = ort_clock_ns();
    /* Not a number, none, or beyond what the clock counts. */
    if (!(seconds > 0) || seconds * 1e9 >= (double)(INT64_MAX - (int64_t)now))
        return 0;
    return now + (uint64_t)(seconds * 1e9);
}

static void inherit(ort_budget *budget)
{
    ort_budget *outer = budget->outer = current;
    if (!outer)
        return;
    if (!budget->account)
        budget->account = outer->account;
    if (outer->deadline_ns && (!budget->deadline_ns || outer->deadline_ns < budget->deadline_ns)) {
        budget->deadline_ns = outer->deadline_ns;
        budget->timeout_s = outer->timeout_s;
    }
    atomic_init(&budget->stopped, atomic_load(&outer->stopped));
}

void ort_budget_begin(ort_budget *budget, ort_account *account, double timeout_s,
                      const ort_cancel *cancel)
{
    *budget = (ort_budget){.account = account,
                           .deadline_ns = deadline_after(timeout_s),
                           .timeout_s = timeout_s,
                           .cancel = cancel};
    inherit(budget);
    current = budget;
}

void ort_budget_begin_ahead(ort_budget *budget)
{
    *budget = (ort_budget){.is_ahead = true};
    inherit(budget);
    if (budget->outer && budget->outer->work_limit) {
        uint64_t spent = atomic_load(&budget->outer->ahead), limit = budget->outer->work_limit;
        budget->work_limit = spent < limit ? limit - spent : 1;
    }
    current = budget;
}

ort_status ort_budget_stopped(const ort_budget *budget, ort_error *err)
{
    switch (atomic_load(&budget->stopped)) {
    case ORT_ERROR_CANCELLED:
        return ort_error_set(err, ORT_ERROR_CANCELLED, "the work was cancelled");
    case ORT_ERROR_TIMEOUT:
        return ort_error_set(err, ORT_ERROR_TIMEOUT, "it took longer than its time limit of %g s",
                             budget->timeout_s);
    case ORT_ERROR_UNSUPPORTED:
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "it takes too many steps before a run");
    default:
        return ORT_OK;
    }
}

ort_status ort_budget_end(ort_budget *budget, ort_status status, ort_error *err)
{
    current = budget->outer;
    if (budget->is_ahead) /* told already, or left to the run: not the reason of a later failure */
        (void)take_refusal(budget->account);
    if (current && budget->work_limit)
        atomic_fetch_add(&current->ahead, atomic_load(&budget->work) + atomic_load(&budget->ahead));
    ort_status why = status != ORT_OK ? ort_budget_stopped(budget, err) : ORT_OK;
    return why ? why : status;
}

/* By its own token, or that of work around it. */
static bool is_cancelled(const ort_budget *budget)
{
    while (budget && !ort_cancel_is_set(budget->cancel))
        budget = budget->outer;
    return budget;
}

bool ort_budget_over(ort_budget *budget)
{
    int why = ORT_OK;
    if (!budget)
        return false;
    if (atomic_load_explicit(&budget->stopped, memory_order_relaxed))
        return true;
    if (is_cancelled(budget))
        why = ORT_ERROR_CANCELLED;
    else if (budget->deadline_ns && ort_clock_ns() > budget->deadline_ns)
        why = ORT_ERROR_TIMEOUT;
    else if (budget->work_limit && atomic_load(&budget->work) > budget->work_limit)
        why = ORT_ERROR_UNSUPPORTED;
    if (!why)
        return false;
    int none = ORT_OK; /* the first reason stays */
    atomic_compare_exchange_strong(&budget->stopped, &none, why);
    return true;
}

ort_status ort_budget_check(ort_error *err)
{
    return ort_budget_over(current) ? ort_budget_stopped(current, err) : ORT_OK;
}

bool ort_budget_spend(uint64_t steps)
{
    if (!current)
        return false;
    if (current->work_limit)
        atomic_fetch_add_explicit(&current->work, steps, memory_order_relaxed);
    return ort_budget_over(current);
}

/* ---- loading */

static size_t load_limit(const ort_limits *limits)
{
    return limits && limits->memory_bytes ? limits->memory_bytes : ORT_LOAD_BYTES;
}

static ort_status begin(ort_loading *loading, const ort_limits *limits, ort_error *err)
{
    if (!loading->account)
        return ort_error_memory(err, sizeof *loading->account);
    ort_budget_begin(&loading->budget, loading->account, limits ? limits->timeout_s : 0,
                     limits ? limits->cancel : NULL);
    loading->budget.work_limit = ORT_LOAD_WORK;
    return ORT_OK;
}

ort_account *ort_account_new_whole(size_t limit_bytes)
{
    ort_account *account = ort_account_new(limit_bytes, "of all that is held", NULL);
    account_allow(account, ORT_LOAD_ALLOWED);
    return account;
}

static ort_account *new_account(size_t limit, ort_account *outer)
{
    ort_account *account = ort_account_new(limit, "of loading a model", outer);
    if (account)
        allow_one(account, ORT_LOAD_ALLOWED);
    return account;
}

ort_status ort_loading_begin(ort_loading *loading, const ort_limits *limits, ort_account *account,
                             ort_error *err)
{
    if (!account && current)
        account = current->account;
    loading->account = account ? ort_account_retain(account)
                               : new_account(load_limit(limits), limits ? limits->whole : NULL);
    return begin(loading, limits, err);
}

ort_status ort_loading_begin_apart(ort_loading *loading, const ort_limits *limits,
                                   const ort_account *account, ort_error *err)
{
    bool counts = account && atomic_load(&account->limit); /* or it was handed to runs */
    size_t limit = load_limit(limits), taken = counts ? ort_account_excess(account) : 0;
    ort_account *whole = account ? account->outer : limits ? limits->whole : NULL;
    loading->account = new_account(taken < limit ? limit - taken : 1, whole);
    if (account && loading->account) /* the whole has allowed it already */
        allow_one(loading->account, atomic_load(&account->allowed));
    return begin(loading, limits, err);
}

ort_status ort_loading_end(ort_loading *loading, ort_status status, ort_error *err)
{
    status = ort_budget_end(&loading->budget, status, err);
    ort_account_release(loading->account);
    return status;
}

void ort_loading_leave_to_runs(const ort_limits *limits)
{
    ort_account *account = current ? current->account : NULL;
    if (!account || (limits && limits->memory_bytes) || !atomic_load(&account->limit))
        return;
    atomic_store(&account->ahead_limit, atomic_load(&account->limit));
    atomic_store(&account->limit, 0);
}

ort_account *ort_account_of_work(void)
{
    return current ? ort_account_retain(current->account) : NULL;
}

ort_account *ort_account_whole_of_work(void)
{
    return current && current->account ? ort_account_retain(current->account->outer) : NULL;
}

void ort_loading_allow_file(size_t bytes)
{
    if (current)
        account_allow(current->account, bytes < SIZE_MAX / ORT_LOAD_PER_FILE_BYTE
                                            ? bytes * ORT_LOAD_PER_FILE_BYTE
                                            : SIZE_MAX);
}
