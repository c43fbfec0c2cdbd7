/* partition.c - the table of providers, and opening those that a user's list names. */
#include "provider/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/nearest.h"

#define X(name) extern const ort_provider ort_provider_##name;
#include "provider/providers.def"
#undef X

static const ort_provider *const providers[] = {
#define X(name) &ort_provider_##name,
#include "provider/providers.def"
#undef X
    NULL,
};

/* What users of other runtimes ask for. A name that a build has is found before this list is. */
static const char *const foreign[] = {
    "acl", "azure", "cann", "coreml", "cuda", "directml", "dml", "dnnl", "js", "migraphx", "nnapi",
    "nv_tensorrt_rtx", "opencl", "openvino", "qnn", "rknpu", "rocm", "tensorrt", "tvm", "vitisai",
    "vsinpu", "vulkan", "webgpu", "webnn", "xnnpack", NULL,
};

const ort_provider *const *ort_provider_table(void)
{
    return providers;
}

const ort_provider *ort_provider_at(int index)
{
    int count = (int)(sizeof providers / sizeof *providers) - 1;
    return index >= 0 && index < count ? providers[index] : NULL;
}

const char *ort_partition_foreign(int index)
{
    int count = (int)(sizeof foreign / sizeof *foreign) - 1;
    return index >= 0 && index < count ? foreign[index] : NULL;
}

/* ---- the table */

/* Memory for values: all of it, or none. */
static bool is_memory_whole(const ort_provider *p)
{
    bool all = p->shares && p->memory && p->memory_free && p->memory_part &&
               p->memory_alignment && p->memory_write && p->memory_read && p->use_in && p->use_out;
    bool any = p->shares || p->memory || p->memory_free || p->memory_part ||
               p->memory_alignment || p->memory_write || p->memory_read || p->use_in || p->use_out;
    return p->host ? !any : all || !any;
}

/* Either all of what only devices have, or none of it. */
static bool is_whole(const ort_provider *p)
{
    bool moves = p->copy_cost && p->plan && p->plan_free && p->frame && p->frame_free &&
                 p->copy_in && p->run && p->copy_out && p->sync;
    bool any = p->copy_cost || p->plan || p->plan_free || p->frame || p->frame_free ||
               p->copy_in || p->run || p->copy_out || p->sync;
    return p->size == sizeof *p && p->name && *p->name && p->doc && p->open && p->close &&
           p->devices && p->claim && p->supports && p->cost && (p->host ? !any : moves) &&
           is_memory_whole(p);
}

/* What the syntax of lists takes for itself can't be part of a name. */
static bool is_name(const char *text)
{
    return !text[strcspn(text, ",:= ")];
}

ort_status ort_provider_table_check(const ort_provider *const *table, ort_error *err)
{
    for (int i = 0; table[i]; i++) {
        const ort_provider *p = table[i];
        if (!is_whole(p) || !is_name(p->name))
            return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' isn't whole",
                                 p->name ? p->name : "");
        if (p->host != (i == 0))
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "provider '%s': the first row is the host, and no other",
                                 p->name);
        for (int k = 0; k < i; k++)
            if (!strcmp(p->name, table[k]->name))
                return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' is there twice", p->name);
    }
    return table[0] ? ORT_OK : ort_error_set(err, ORT_ERROR_USAGE, "there is no provider");
}

/* ---- a list "name:key=value:key=value,name" */

typedef struct wanted { /* one of the list */
    const ort_provider *row;
    ort_provider_setup setup;
    int cost; /* on 1, off -1, not said 0 */
    char text[512]; /* that options point into */
} wanted;

static const ort_provider *find(const ort_provider *const *table, const char *name)
{
    for (int i = 0; table[i]; i++)
        if (!strcmp(table[i]->name, name))
            return table[i];
    return NULL;
}

static ort_status unknown(const ort_provider *const *table, const char *name, ort_error *err)
{
    char list[256] = "", meant[128];
    bool known = false;
    ort_nearest near;
    ort_nearest_begin(&near, name);
    for (int i = 0; table[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", table[i]->name);
        ort_nearest_try(&near, table[i]->name);
    }
    for (int i = 0; foreign[i]; i++)
        known = known || !strcasecmp(foreign[i], name);
    return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' is %s%s; this build has: %s", name,
                         known ? "not in this build" : "unknown",
                         known ? "" : ort_nearest_text(&near, meant, sizeof meant), list);
}

static ort_status unknown_option(const ort_provider *row, const char *key, ort_error *err)
{
    char list[256] = "cost=on|off";
    if (row->host)
        return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' has no options", row->name);
    for (int i = 0; row->options && row->options[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, ", %s", row->options[i]);
    }
    return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' has no option '%s'; it has: %s",
                         row->name, key, list);
}

static bool has_option(const ort_provider *row, const char *key)
{
    size_t length = strlen(key);
    for (int i = 0; row->options && row->options[i]; i++)
        if (!strncmp(row->options[i], key, length) && row->options[i][length] == '=')
            return true;
    return false;
}

static ort_status comes_twice(const wanted *w, const char *key, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s': option '%s' comes twice",
                         w->row->name, key);
}

static ort_status add_option(wanted *w, char *text, ort_error *err)
{
    char *value = strchr(text, '=');
    if (!value || value == text || !value[1])
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "provider '%s': '%s' isn't an option; options are KEY=VALUE, each "
                             "behind a colon", w->row->name, text);
    *value++ = '\0';
    if (!strcmp(text, "cost") && !w->row->host) {
        if (strcmp(value, "on") && strcmp(value, "off"))
            return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s': cost is on or off, not '%s'",
                                 w->row->name, value);
        if (w->cost)
            return comes_twice(w, text, err);
        w->cost = !strcmp(value, "on") ? 1 : -1;
        return ORT_OK;
    }
    if (!has_option(w->row, text))
        return unknown_option(w->row, text, err);
    for (int i = 0; i < w->setup.option_count; i++)
        if (!strcmp(w->setup.options[i].key, text))
            return comes_twice(w, text, err);
    if (w->setup.option_count == ORT_PROVIDER_OPTIONS_MAX)
        return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s': more than %d options",
                             w->row->name, ORT_PROVIDER_OPTIONS_MAX);
    w->setup.options[w->setup.option_count++] = (ort_provider_option){text, value};
    return ORT_OK;
}

/* The next of the list, which moves on. */
static ort_status parse_one(const ort_provider *const *table, const char **list, wanted *w,
                            ort_error *err)
{
    size_t length = strcspn(*list, ",");
    char *rest = w->text, *part;
    memset(w, 0, sizeof *w);
    if (length >= sizeof w->text)
        return ort_error_set(err, ORT_ERROR_USAGE, "provider '%.40s...' has too many options",
                             *list);
    memcpy(w->text, *list, length);
    *list += length + ((*list)[length] == ',');
    part = strsep(&rest, ":");
    w->row = find(table, part);
    if (!w->row)
        return unknown(table, part, err);
    while ((part = strsep(&rest, ":")) != NULL)
        ORT_TRY(add_option(w, part, err));
    return ORT_OK;
}

ort_status ort_partition_check_list(const ort_provider *const *table, const char *list,
                                    ort_error *err)
{
    wanted w;
    while (list && *list)
        ORT_TRY(parse_one(table, &list, &w, err));
    return ORT_OK;
}

bool ort_partition_may_fall_back(const ort_provider *const *table, const char *list)
{
    size_t length = strlen(table[0]->name);
    bool host = false, device = false;
    while (list && *list) {
        bool is_host = strcspn(list, ",:") == length && !strncmp(list, table[0]->name, length);
        host = host || is_host;
        device = device || !is_host;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return host && device;
}

/* ---- opening */

/* Beside the device whose memory it shares, if it has any. */
static ort_status open_device(const ort_partition_setup *setup, wanted *w, ort_open_provider *o,
                              ort_error *err)
{
    w->setup.log = setup->log;
    w->setup.threads = setup->threads;
    w->setup.api = &ort_provider_functions;
    ORT_TRY(ort_devices_get(setup->devices, w->row, &w->setup, &o->memory, err));
    w->setup.beside = o->memory ? o->memory->device : NULL;
    ort_status status = w->row->open(&w->setup, &o->device, err);
    if (status != ORT_OK)
        ort_device_free(o->memory);
    return status;
}

/* A device that is missing leaves its place to the others, if the list names others. */
static ort_status open_one(ort_partition *p, const ort_partition_setup *setup, wanted *w,
                           bool may_lack, ort_error *err)
{
    ort_error problem = {0};
    ort_open_provider opened = {.row = w->row};
    for (int i = 0; i < p->count; i++)
        if (p->list[i].row == w->row)
            return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' comes twice", w->row->name);
    if (p->count == ORT_PROVIDERS_MAX - 1 && !w->row->host)
        return ort_error_set(err, ORT_ERROR_USAGE, "more than %d providers", ORT_PROVIDERS_MAX - 1);
    ort_status status = open_device(setup, w, &opened, &problem);
    if (status != ORT_OK && !problem.message[0])
        (void)ort_error_set(&problem, status, "it fails and doesn't say why");
    if ((status == ORT_ERROR_DEVICE || status == ORT_ERROR_MEMORY) && may_lack) {
        ort_log_write(setup->log, ORT_LOG_WARNING, "provider '%s' is left out: %s", w->row->name,
                      problem.message);
        return ORT_OK;
    }
    if (status != ORT_OK)
        return ort_error_set(err, status, "provider '%s': %s", w->row->name, problem.message);
    opened.by_cost = w->cost > 0 || (!w->cost && p->host_named);
    p->list[p->count++] = opened;
    return ORT_OK;
}

/* Each of the list but the host. */
static ort_status open_list(ort_partition *p, const ort_partition_setup *setup, wanted *host,
                            ort_error *err)
{
    const char *list = setup->list;
    wanted w;
    for (const char *at = list; *at;) {
        ORT_TRY(parse_one(setup->table, &at, &w, err));
        p->host_named = p->host_named || w.row->host;
    }
    while (*list) {
        ORT_TRY(parse_one(setup->table, &list, &w, err));
        if (w.row->host && host->row)
            return ort_error_set(err, ORT_ERROR_USAGE, "provider '%s' comes twice", w.row->name);
        bool may_lack = !setup->strict && (p->host_named || *list || p->count);
        if (w.row->host)
            *host = w;
        else
            ORT_TRY(open_one(p, setup, &w, may_lack, err));
    }
    return ORT_OK;
}

ort_status ort_partition_open(ort_partition *partition, const ort_partition_setup *setup,
                              ort_error *err)
{
    wanted host = {0};
    if (setup->list && *setup->list)
        ORT_TRY(open_list(partition, setup, &host, err));
    else
        partition->host_named = true;
    host.row = setup->table[0];
    return open_one(partition, setup, &host, false, err);
}

ort_status ort_partition_device_open(const ort_partition_setup *setup, ort_device **device,
                                     ort_error *err)
{
    const char *list = setup->list;
    ort_error problem = {0};
    wanted w;
    ORT_TRY(parse_one(setup->table, &list, &w, err));
    if (*list)
        return ort_error_set(err, ORT_ERROR_USAGE, "'%s' is more than one provider", setup->list);
    if (!ort_provider_has_memory(w.row))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "provider '%s' keeps no memory for values%s", w.row->name,
                             w.row->host ? "; it is the host" : "");
    w.setup.log = setup->log;
    w.setup.threads = setup->threads;
    w.setup.api = &ort_provider_functions;
    ort_status status = ort_devices_get(setup->devices, w.row, &w.setup, device, &problem);
    return status == ORT_OK ? ORT_OK
                            : ort_error_set(err, status, "provider '%s': %s", w.row->name,
                                            problem.message);
}

const char *ort_partition_name(const ort_partition *partition, const ort_node *node)
{
    int owner = ort_partition_owner(partition, node);
    return owner >= 0 ? partition->list[owner].row->name : "none";
}

const char *ort_partition_names(const ort_partition *partition, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < partition->count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? "," : "", partition->list[i].row->name);
    }
    return text;
}

void ort_partition_forget(ort_partition *p)
{
    for (size_t i = 0; p->bodies && i < p->owner_count; i++) {
        for (int k = 0; k < p->bodies[i].count; k++)
            ort_partition_forget(&p->bodies[i].list[k]);
        free(p->bodies[i].list);
    }
    free(p->bodies);
    free(p->owner);
    free(p->idle);
    p->bodies = NULL;
    p->owner = NULL;
    p->idle = NULL;
    p->owner_count = 0;
    p->divided = p->divided_within = false;
}

void ort_partition_release(ort_partition *partition)
{
    ort_partition_forget(partition);
    for (int i = 0; i < partition->count; i++) {
        partition->list[i].row->close(partition->list[i].device);
        ort_device_free(partition->list[i].memory);
    }
    memset(partition, 0, sizeof *partition);
}
