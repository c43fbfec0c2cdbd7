/* partition.h - who runs which node of a session's main graph, and of the bodies in it.
 *
 * The user's list says in which order the providers are asked; the host is always the last. Each
 * claims nodes with a reason for every refusal, and the first that claims a node has it, unless an
 * estimate finds that moving its values would cost more than is won (a least cut). Nodes are then
 * ordered so that what one provider runs stands together: a provider's turn goes on for as long as
 * any of its nodes could run, which with two providers gives the fewest turns that the graph
 * allows, and never a cycle.
 *
 * A node that has bodies is the host's, which runs the loop or takes the branch. Each of its bodies
 * is divided as a graph of its own.
 */
#ifndef ORT_PROVIDER_PARTITION_H
#define ORT_PROVIDER_PARTITION_H

#include "base/findings.h"
#include "provider/device.h"
#include "provider/provider.h"

#define ORT_PROVIDERS_MAX 8

typedef struct ort_open_provider { /* a provider of the list */
    const ort_provider *row;
    void *device;
    ort_device *memory; /* on which values lie that it takes as they are; or NULL */
    /* What moving would make slower stays on the host. "cost=off", and a list without the host
     * that doesn't ask for it: all that is claimed goes. */
    bool by_cost;
} ort_open_provider;

typedef struct ort_partition ort_partition;

typedef struct ort_bodies { /* of a node: how each of its bodies is divided */
    ort_partition *list;
    int count;
} ort_bodies;

struct ort_partition {
    ort_open_provider list[ORT_PROVIDERS_MAX]; /* in the order of preference, the host last */
    int count;
    bool host_named; /* the user's list has the host, or there is no list */
    int8_t *owner; /* by node id: index into the list, -1 nobody */
    bool *idle;    /* by node id: no run computes it; NULL: the host is alone, and nobody asks */
    size_t owner_count;
    bool divided;  /* not all nodes are the host's */
    bool divided_within; /* the same of a body, however deep */
    ort_bodies *bodies;  /* by node id; NULL: the host runs all of them */
}; /* all zero is valid; one of a body borrows its list */

typedef struct ort_partition_setup {
    const ort_provider *const *table;
    const char *list; /* "opencl:device=0:fp16=1,cpu"; NULL or empty: the host */
    bool strict;
    int threads;
    const ort_log *log;
    ort_devices *devices; /* of the environment; NULL: it has none to share */
} ort_partition_setup;

/* Open the providers of the list. A name or an option that no row has is ORT_ERROR_USAGE with the
 * list of those that are. A device that is missing is an error when `strict` or when the list
 * leaves nobody else; otherwise a warning. */
ort_status ort_partition_open(ort_partition *partition, const ort_partition_setup *setup,
                              ort_error *err);
/* The device of `one`, an entry of a list, for values alone. */
ort_status ort_partition_device_open(const ort_partition_setup *setup, ort_device **device,
                                     ort_error *err);
/* The list alone: names, options. Opens nothing. */
ort_status ort_partition_check_list(const ort_provider *const *table, const char *list,
                                    ort_error *err);
/* Does the list name the host and a device? */
bool ort_partition_may_fall_back(const ort_provider *const *table, const char *list);
/* Names that other runtimes have and this table lacks: NULL past the end. */
const char *ort_partition_foreign(int index);

/* Of each node and each provider that didn't get it, in order; p divides the graph or body that the
 * node is of. `why` lives for the call. */
typedef void ort_refusal_fn(void *arg, const ort_partition *p, const ort_node *node,
                            const ort_provider *by, const char *why);

/* Assign every node of the graph and of its bodies; what nobody runs of the graph goes to findings.
 * tell: NULL, or hears of refusals. */
ort_status ort_partition_assign(ort_partition *partition, const ort_graph *graph,
                                ort_findings *findings, ort_refusal_fn *tell, void *arg,
                                ort_error *err);
/* Does a run leave the node out, since its results follow from constants or shapes? */
static inline bool ort_partition_idles(const ort_partition *p, const ort_node *node)
{
    return p->idle && node->id < p->owner_count && p->idle[node->id];
}
/* Can the value differ from run to run, so that one copies it? */
bool ort_partition_moves(const ort_graph *graph, ort_id id);
/* partition_cost.c: nodes that are cheaper on the host go back to it. */
ort_status ort_partition_weigh(ort_partition *partition, const ort_graph *graph, int provider,
                               ort_refusal_fn *tell, void *arg, ort_error *err);
/* A node's work and the bytes of its values, with sizes assumed for open dimensions. */
void ort_partition_work(const ort_graph *graph, const ort_node *node, ort_cost *cost,
                        double *bytes);
/* What a node takes on a provider of the list, and what it takes to bring a value to it or back, by
 * the provider's estimate. */
double ort_partition_seconds(const ort_partition *partition, const ort_graph *graph,
                             const ort_node *node, int provider);
double ort_partition_copy_seconds(const ort_partition *partition, const ort_graph *graph, ort_id id,
                                  int provider);
/* Run each provider's lowering inside of its part. options: as of a session's other passes, of
 * level 3; their table is the provider's. New nodes are its own. */
ort_status ort_partition_lower(ort_partition *partition, ort_model *model,
                               const ort_pass_options *options, ort_error *err);
/* Order the graph by turns (partition_order.c). Leaves a graph alone that the host runs whole. */
ort_status ort_partition_order(const ort_partition *partition, ort_graph *graph, ort_error *err);

typedef struct ort_tally { /* what the division comes to, bodies included */
    int nodes[ORT_PROVIDERS_MAX];
    int around;     /* of the host's: nodes that have bodies, and run these */
    int turns;      /* stretches of nodes of one provider, in the graph's order */
    int borders;    /* values that one run copies, once for each device that needs them */
    double bytes;   /* what these have */
    double copy_seconds; /* what these take, by estimate */
    bool open;      /* some have open dimensions, which count as 1, or bodies, which run once */
} ort_tally;

ort_status ort_partition_tally(const ort_partition *partition, const ort_graph *graph,
                               ort_tally *tally, ort_error *err);
/* "opencl: 118 nodes, cpu: 6, 4 borders, 3.1 MB copied per run"; returns `text`. */
const char *ort_partition_line(const ort_partition *partition, const ort_tally *tally, char *text,
                               size_t size);

/* The owner's index; -1: nobody. Nodes of other graphs and new ones are the host's. */
static inline int ort_partition_owner(const ort_partition *p, const ort_node *node)
{
    return p->owner && node->id < p->owner_count ? p->owner[node->id] : p->count - 1;
}
static inline const ort_provider *ort_partition_host(const ort_partition *p)
{
    return p->count ? p->list[p->count - 1].row : ort_provider_at(0);
}
/* The same; -1: the host, or nobody. */
static inline int ort_partition_device(const ort_partition *p, const ort_node *node)
{
    int owner = ort_partition_owner(p, node);
    return owner < p->count - 1 ? owner : -1;
}
/* Is a device to run anything? */
static inline bool ort_partition_has_device(const ort_partition *p)
{
    return p->divided || p->divided_within;
}
/* How body `index` of the node is divided; NULL: the host runs it. */
static inline const ort_partition *ort_partition_body(const ort_partition *p, const ort_node *node,
                                                      int index)
{
    return p && p->bodies && node->id < p->owner_count && index < p->bodies[node->id].count
               ? &p->bodies[node->id].list[index]
               : NULL;
}
const char *ort_partition_name(const ort_partition *partition, const ort_node *node);
/* Of all that were opened, with commas; returns `text`. */
const char *ort_partition_names(const ort_partition *partition, char *text, size_t size);
/* Who has which node, and nothing else. */
void ort_partition_forget(ort_partition *partition);
void ort_partition_release(ort_partition *partition);

#endif
