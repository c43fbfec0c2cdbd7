/* plan_branches.c - stretches of steps that fall apart into independent branches, run side by side.
 *
 * An operator splits its own work over the threads, which pays from some tens of microseconds on.
 * Smaller ones are left to one thread (pool.c) while the others wait; so where several chains of
 * small steps hang side by side (heads of a detector, towers of a block, projections of one token),
 * each chain becomes one task. A step inside such a task runs its loops serially (pool.h), so what
 * it computes doesn't change.
 *
 * Candidates are windows of consecutive steps. Within one, two steps belong together when they
 * touch a storage that one of them writes, be it by data or because a step works in place. The gain
 * of a window is the estimated time of its steps one after another, each split if it is long
 * enough, less the longest branch or the even share, whichever is longer. Windows are chosen for
 * the greatest sum of gains by dynamic programming over the steps. What lives in a chosen window
 * then lives through the whole of it, since its branches have no common order.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/plan.h"

enum { WINDOW = 192, MAX_INPUTS = 64, MAX_OUTPUTS = 16 };

/* Rates of small steps on one core, and what a loop over the threads costs while workers spin. Two
 * threads of one core share its units, and a loop's end waits for the slower one. */
#define STEP_NS 150.0
#define MACS_PER_NS 20.0
#define FLOPS_PER_NS 4.0
#define BYTES_PER_NS 20.0
#define LOOP_NS 2000.0
#define SPLIT_NS 10000.0   /* an operator begins to split its work about here */
#define LONG_NS 400000.0   /* splits well: not part of a branch */
#define WORTH_NS 5000.0    /* the least gain */
#define WORTH_PART 0.15    /* and the least part of the time */

typedef struct toucher { /* a step of the window that touches a storage */
    int step, next;
} toucher;

typedef struct touched { /* a storage in the present window */
    int window;  /* the window these fields speak of */
    int first;   /* list of touchers */
    bool written;
} touched;

typedef struct finder {
    ort_plan *plan;
    double *serial_ns; /* per step: on one thread; negative: can't be part of a branch */
    bool *starts;      /* per step: reads what another step reads too, or no storage at all */
    touched *storages;
    toucher *list;
    int list_count, window;
    int *parent;       /* of a window's steps, from its first */
    double *branch_ns; /* at roots */
    double *best;      /* per step: greatest gain of the steps before it */
    int *from;         /* per step: where the window that ends before it begins, or -1 */
} finder;

/* ---- estimates */

static bool plain_tensor(const ort_plan *plan, ort_id id, double *bytes)
{
    const ort_slot_plan *slot = &plan->slots[id];
    if (!slot->fixed || slot->tensor.dtype == ORT_DTYPE_STRING)
        return false;
    *bytes += (double)ort_tensor_bytes(&slot->tensor);
    return true;
}

static double estimate(const ort_plan *plan, const ort_fact *facts, const ort_plan_step *ps)
{
    const ort_step *s = ps->step;
    const ort_fact *in[MAX_INPUTS] = {0};
    ort_fact out[MAX_OUTPUTS] = {0};
    ort_cost cost;
    double bytes = 0, ns;
    if (ps->special || s->in_count > MAX_INPUTS || s->out_count > MAX_OUTPUTS ||
        ort_op_library(s->op))
        return -1;
    for (int i = 0; i < s->in_count; i++) {
        if (s->in[i] == ORT_ID_NONE)
            continue;
        if (!plain_tensor(plan, s->in[i], &bytes))
            return -1;
        in[i] = &facts[s->in[i]];
    }
    for (int i = 0; i < s->out_count; i++) {
        if (s->out[i] == ORT_ID_NONE)
            continue;
        if (!plain_tensor(plan, s->out[i], &bytes))
            return -1;
        out[i] = facts[s->out[i]];
    }
    ort_infer x = {.node = s->node, .op = s->op, .opset = s->node->opset,
                   .in_count = s->in_count, .out_count = s->out_count, .in = in, .out = out,
                   .graph = plan->program->graph, .state = s->state};
    ort_cost_of(&x, &cost);
    ns = (cost.done_macs > 0 ? cost.done_macs : cost.macs) / MACS_PER_NS;
    ns += cost.flops / FLOPS_PER_NS;
    ns = STEP_NS + (ns > bytes / BYTES_PER_NS ? ns : bytes / BYTES_PER_NS);
    return ns <= LONG_NS ? ns : -1;
}

static double split_ns(double ns, int threads)
{
    double split = ns / threads + LOOP_NS;
    return ns < SPLIT_NS || ns < split ? ns : split;
}

/* ---- branches of a window */

static int find_root(const finder *f, int step)
{
    while (f->parent[step] != step)
        step = f->parent[step] = f->parent[f->parent[step]];
    return step;
}

static int join(finder *f, int a, int b)
{
    a = find_root(f, a);
    b = find_root(f, b);
    if (a == b)
        return a;
    f->parent[b] = a;
    f->branch_ns[a] += f->branch_ns[b];
    return a;
}

/* Joins `step` (counted from the window's first) with the others that touch storage `index`. */
static int touch(finder *f, int step, int index, bool write)
{
    assert(index < f->plan->storage_count);
    assert(f->list_count < WINDOW * (MAX_INPUTS + MAX_OUTPUTS));
    touched *t = &f->storages[index];
    bool was_written = t->window == f->window && t->written;
    int joined = 0;
    if (t->window != f->window)
        *t = (touched){.window = f->window, .first = -1};
    t->written = t->written || write;
    for (int at = t->first; t->written && at >= 0; at = f->list[at].next) {
        if (find_root(f, f->list[at].step) != find_root(f, step)) {
            join(f, step, f->list[at].step);
            joined++;
        }
        if (was_written)
            break; /* the others were joined with this one before */
    }
    f->list[f->list_count] = (toucher){step, t->first};
    t->first = f->list_count++;
    return joined;
}

static int storage_index(const ort_plan *plan, ort_id id)
{
    return id != ORT_ID_NONE && plan->slots[id].place == ORT_PLACE_ARENA ? plan->storage_of[id]
                                                                        : -1;
}

/* Adds the next step to the window; returns by how many the number of its branches grows. */
static int add_step(finder *f, int first, int step)
{
    const ort_step *s = f->plan->steps[first + step].step;
    int joined = 0, index;
    assert(step < WINDOW && f->serial_ns[first + step] >= 0); /* what it counts on, too */
    f->parent[step] = step;
    f->branch_ns[step] = f->serial_ns[first + step];
    for (int i = 0; i < s->in_count; i++)
        if ((index = storage_index(f->plan, s->in[i])) >= 0)
            joined += touch(f, step, index, false);
    for (int i = 0; i < s->out_count; i++)
        if ((index = storage_index(f->plan, s->out[i])) >= 0)
            joined += touch(f, step, index, true);
    return 1 - joined;
}

static void open_window(finder *f)
{
    f->window++;
    f->list_count = 0;
}

/* ---- windows */

static bool can_start(const finder *f, const int *readers, int step)
{
    const ort_step *s = f->plan->steps[step].step;
    bool reads = false;
    int index;
    for (int i = 0; i < s->in_count; i++) {
        if ((index = storage_index(f->plan, s->in[i])) < 0)
            continue;
        if (readers[index] > 1)
            return true;
        reads = true;
    }
    return !reads;
}

static void try_windows(finder *f, int first, int threads)
{
    double one_by_one = 0, sum = 0, longest = 0;
    int branches = 0;
    open_window(f);
    for (int k = 0; k < WINDOW && first + k < f->plan->step_count; k++) {
        double ns = f->serial_ns[first + k], share, gain;
        if (ns < 0)
            return;
        branches += add_step(f, first, k);
        one_by_one += split_ns(ns, threads);
        sum += ns;
        ns = f->branch_ns[find_root(f, k)];
        longest = longest > ns ? longest : ns;
        share = (longest > sum / threads ? longest : sum / threads) + LOOP_NS;
        gain = one_by_one - share;
        if (branches < 2 || gain < WORTH_NS || gain < WORTH_PART * one_by_one ||
            f->best[first] + gain <= f->best[first + k + 1])
            continue;
        f->best[first + k + 1] = f->best[first] + gain;
        f->from[first + k + 1] = first;
    }
}

static void choose_windows(finder *f, int threads)
{
    for (int i = 0; i <= f->plan->step_count; i++) {
        f->best[i] = 0;
        f->from[i] = -1;
    }
    for (int i = 0; i < f->plan->step_count; i++) {
        if (f->best[i] >= f->best[i + 1]) {
            f->best[i + 1] = f->best[i];
            f->from[i + 1] = -1;
        }
        if (f->starts[i] && f->serial_ns[i] >= 0)
            try_windows(f, i, threads);
    }
}

/* ---- a chosen window becomes a group */

/* Each branch into the bin with the least work, the longest first; bin of every root. */
static int fill_bins(const finder *f, int count, int *bin_of, double *load)
{
    int bins = 0;
    for (int i = 0; i < count; i++)
        bin_of[i] = -1;
    for (;;) {
        int longest = -1, least = 0;
        for (int i = 0; i < count; i++)
            if (f->parent[i] == i && bin_of[i] < 0 &&
                (longest < 0 || f->branch_ns[i] > f->branch_ns[longest]))
                longest = i;
        if (longest < 0)
            return bins;
        if (bins < ORT_MAX_BRANCHES)
            load[least = bins++] = 0;
        for (int b = 0; bins == ORT_MAX_BRANCHES && b < bins; b++)
            least = load[b] < load[least] ? b : least;
        bin_of[longest] = least;
        load[least] += f->branch_ns[longest];
    }
}

static bool make_group(finder *f, int first, int count, ort_branch_group *group)
{
    int bin_of[WINDOW], used = 0;
    double load[ORT_MAX_BRANCHES];
    int *order = ort_arena_array(&f->plan->memory, (size_t)count, sizeof *order);
    open_window(f);
    for (int k = 0; k < count; k++)
        add_step(f, first, k);
    *group = (ort_branch_group){.first = first, .count = count, .order = order};
    if (!order)
        return false;
    group->branch_count = fill_bins(f, count, bin_of, load);
    for (int b = 0; b < group->branch_count; b++) {
        for (int k = 0; k < count; k++)
            if (bin_of[find_root(f, k)] == b)
                order[used++] = first + k;
        group->ends[b] = used;
    }
    assert(used == count); /* each step is in one branch */
    return true;
}

/* What is alive at some step of a group is alive at all of them. */
static void lengthen_lives(ort_plan *plan, int *begin, int *end)
{
    for (int i = 0; i < plan->position_count; i++)
        begin[i] = end[i] = i;
    for (int g = 0; g < plan->group_count; g++) {
        const ort_branch_group *group = &plan->groups[g];
        int first = plan->steps[group->first].position;
        int last = plan->steps[group->first + group->count - 1].position;
        for (int i = first; i <= last; i++) {
            begin[i] = first;
            end[i] = last;
        }
    }
    for (int i = 0; i < plan->storage_count; i++) {
        ort_storage *s = &plan->storages[i];
        assert(s->first <= s->last);
        if (s->first >= 0 && s->first < plan->position_count)
            s->first = begin[s->first];
        if (s->last >= 0 && s->last < plan->position_count)
            s->last = end[s->last];
    }
}

static ort_status make_groups(finder *f, ort_error *err)
{
    ort_plan *plan = f->plan;
    int count = 0, used = 0;
    for (int i = plan->step_count; i > 0; i = f->from[i] >= 0 ? f->from[i] : i - 1)
        count += f->from[i] >= 0;
    if (!count)
        return ORT_OK;
    plan->groups = ort_arena_array(&plan->memory, (size_t)count, sizeof *plan->groups);
    int *lives = malloc(sizeof *lives * 2 * (size_t)plan->position_count);
    bool ok = plan->groups && lives;
    for (int i = plan->step_count; ok && i > 0; i = f->from[i] >= 0 ? f->from[i] : i - 1)
        if (f->from[i] >= 0)
            ok = make_group(f, f->from[i], i - f->from[i], &plan->groups[count - ++used]);
    if (ok) {
        assert(used == count);
        plan->group_count = count;
        lengthen_lives(plan, lives, lives + plan->position_count);
    }
    free(lives);
    return ok ? ORT_OK : ort_error_memory(err, sizeof *plan->groups * (size_t)count);
}

static bool look_at_steps(finder *f, const ort_fact *facts)
{
    const ort_plan *plan = f->plan;
    int *readers = calloc((size_t)plan->storage_count + 1, sizeof *readers), index;
    for (int i = 0; readers && i < plan->step_count; i++) {
        const ort_step *s = plan->steps[i].step;
        f->serial_ns[i] = estimate(plan, facts, &plan->steps[i]);
        for (int k = 0; k < s->in_count; k++)
            if ((index = storage_index(plan, s->in[k])) >= 0)
                readers[index]++;
    }
    for (int i = 0; readers && i < plan->step_count; i++)
        f->starts[i] = can_start(f, readers, i);
    free(readers);
    return readers != NULL;
}

ort_status ort_plan_branch(ort_plan *plan, const ort_fact *facts, ort_error *err)
{
    size_t steps = (size_t)plan->step_count + 1, storages = (size_t)plan->storage_count + 1;
    int threads = plan->program->env->threads;
    ort_status status = ORT_OK;
    if (threads < 2 || plan->step_count < 2)
        return ORT_OK;
    finder f = {.plan = plan,
                .serial_ns = malloc(sizeof *f.serial_ns * steps),
                .starts = malloc(sizeof *f.starts * steps),
                .storages = calloc(storages, sizeof *f.storages),
                .list = malloc(sizeof *f.list * WINDOW * (MAX_INPUTS + MAX_OUTPUTS)),
                .parent = malloc(sizeof *f.parent * WINDOW),
                .branch_ns = malloc(sizeof *f.branch_ns * WINDOW),
                .best = malloc(sizeof *f.best * steps),
                .from = malloc(sizeof *f.from * steps)};
    if (f.serial_ns && f.starts && f.storages && f.list && f.parent && f.branch_ns && f.best &&
        f.from && look_at_steps(&f, facts)) {
        choose_windows(&f, threads);
        status = make_groups(&f, err);
    } else {
        status = ort_error_memory(err, storages * sizeof *f.storages);
    }
    free(f.serial_ns);
    free(f.starts);
    free(f.storages);
    free(f.list);
    free(f.parent);
    free(f.branch_ns);
    free(f.best);
    free(f.from);
    return status;
}
