/* provider.h - who runs which node. A provider is a const row: it opens its device, claims nodes,
 * and names the lowering passes that run inside its part. The partition gives every node of the
 * main graph to the first provider of the list that claims it; bodies go with their node.
 */
#ifndef ORT_PROVIDER_PROVIDER_H
#define ORT_PROVIDER_PROVIDER_H

#include "op/op.h"
#include "pass/pass.h"

typedef struct ort_provider {
    const char *name;
    const char *doc;
    /* Find the device; *device is handed to the other calls. ORT_ERROR_DEVICE when it is missing.
     */
    ort_status (*open)(void **device, ort_error *err);
    void (*close)(void *device);
    /* Can it run this node? When not, *why is one line (static text). */
    bool (*claim)(void *device, const ort_graph *graph, const ort_node *node, const char **why);
    /* Does it have this operator in some form, whatever the device? For reports. */
    bool (*supports)(const ort_op *op);
    /* Rewrites that only make sense inside its part, of level 3, and those of other levels that
     * clean up behind them; in the order of passes.def, ended by NULL. */
    const ort_pass *const *lower;
} ort_provider;

#define ORT_PROVIDERS_MAX 4

typedef struct ort_partition {
    const ort_provider *providers[ORT_PROVIDERS_MAX];
    void *devices[ORT_PROVIDERS_MAX];
    int provider_count;
    int8_t *owner; /* by node id: index into providers, -1 nobody */
    size_t cut_edges; /* values that cross from one provider to another */
} ort_partition; /* all zero is valid */

/* Rows, first the one that runs what nothing else is said of; NULL past the end. */
const ort_provider *ort_provider_at(int index);
/* Open the providers of a list "opencl,cpu" (NULL: the first of the table). An unknown name is
 * ORT_ERROR_USAGE with the list. A device that is missing is an error when `strict` or when no
 * other provider is left; otherwise a warning. */
ort_status ort_partition_open(ort_partition *partition, const char *list, bool strict,
                              const ort_log *log, ort_error *err);
/* Assign every node of the graph; what nobody claims goes to findings. */
ort_status ort_partition_assign(ort_partition *partition, const ort_graph *graph,
                                ort_findings *findings, ort_error *err);
/* Run each provider's lowering. options: as of a session's other passes, of level 3; their table is
 * the provider's. New nodes are its own. */
ort_status ort_partition_lower(ort_partition *partition, ort_model *model,
                               const ort_pass_options *options, ort_error *err);
const char *ort_partition_name(const ort_partition *partition, const ort_node *node);
/* Of all that were opened, with commas; returns `text`. */
const char *ort_partition_names(const ort_partition *partition, char *text, size_t size);
void ort_partition_release(ort_partition *partition);

extern const ort_provider ort_provider_cpu;

#endif
