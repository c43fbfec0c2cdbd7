/* custom_rows.c - a client's operators as rows of a library of operators: which there are, and what
 * their inputs and outputs take.
 *
 * Each input and output has a type variable of its own, with the element types of all kernels of
 * that name; whether they go together is decided when a kernel is chosen (custom_run.c).
 */
#include "custom.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- what an operator says of it */

size_t abi_op_slots(const OrtCustomOp *op, bool input)
{
    return input ? op->GetInputTypeCount(op) : op->GetOutputTypeCount(op);
}

int abi_op_type(const OrtCustomOp *op, size_t index, bool input)
{
    return input ? op->GetInputType(op, index) : op->GetOutputType(op, index);
}

int abi_op_characteristic(const OrtCustomOp *op, size_t index, bool input)
{
    if (op->version < 8)
        return ABI_REQUIRED;
    int (*say)(const OrtCustomOp *, size_t) =
        input ? op->GetInputCharacteristic : op->GetOutputCharacteristic;
    return say ? say(op, index) : ABI_REQUIRED;
}

int abi_op_min_arity(const OrtCustomOp *op, bool input)
{
    if (op->version < 14)
        return 1;
    int (*say)(const OrtCustomOp *) =
        input ? op->GetVariadicInputMinArity : op->GetVariadicOutputMinArity;
    return say ? say(op) : 1;
}

bool abi_op_homogeneous(const OrtCustomOp *op, bool input)
{
    if (op->version < 14)
        return true;
    int (*say)(const OrtCustomOp *) =
        input ? op->GetVariadicInputHomogeneity : op->GetVariadicOutputHomogeneity;
    return !say || say(op);
}

static int start_version(const OrtCustomOp *op)
{
    return op->version >= 17 && op->GetStartVersion ? op->GetStartVersion(op) : 1;
}

static int end_version(const OrtCustomOp *op)
{
    return op->version >= 17 && op->GetEndVersion ? op->GetEndVersion(op) : INT_MAX;
}

static bool runs_here(const OrtCustomOp *op)
{
    const char *provider = op->GetExecutionProviderType ? op->GetExecutionProviderType(op) : NULL;
    return !provider || !strcmp(provider, "CPUExecutionProvider");
}

/* ----------------------------------------------------------------------------------- signatures */

/* Letters of the library for element types, by the ABI's numbers. */
static const char *const codes[] = {
    "F,bf16,I,U,bool,str,C,F8,Q4,Q2", "f32",  "u8",   "i8",        "u16",        "i16",
    "i32",                            "i64",  "str",  "bool",      "f16",        "f64",
    "u32",                            "u64",  "c64",  "c128",      "bf16",       "f8e4m3fn",
    "f8e4m3fnuz",                     "f8e5m2", "f8e5m2fnuz", "u4", "i4",        "f4e2m1",
    "u2",                             "i2",   "f8e8m0"};

static void write_slot(FILE *out, const OrtCustomOp *op, size_t i, bool input)
{
    fprintf(out, "%s%s%zu", i ? "," : "", input ? "Input" : "Output", i);
    switch (abi_op_characteristic(op, i, input)) {
    case ABI_OPTIONAL_SLOT:
        fputc('?', out);
        break;
    case ABI_VARIADIC:
        fprintf(out, "%s%d", abi_op_homogeneous(op, input) ? "*" : "**",
                abi_op_min_arity(op, input));
        break;
    default:
        break;
    }
    fprintf(out, ":%c%zu", input ? 'I' : 'O', i);
}

static bool knows_types(const OrtCustomOp *op, bool input)
{
    for (size_t i = 0; i < abi_op_slots(op, input); i++) {
        int type = abi_op_type(op, i, input);
        if (type < 0 || (size_t)type >= sizeof codes / sizeof *codes)
            return false;
    }
    return true;
}

static void write_types(FILE *out, const abi_family *f, bool input)
{
    for (size_t i = 0; i < abi_op_slots(f->ops[0], input); i++) {
        fprintf(out, "%s%c%zu:", i || !input ? " " : "", input ? 'I' : 'O', i);
        for (size_t k = 0; k < f->count; k++)
            fprintf(out, "%s%s", k ? "," : "", codes[abi_op_type(f->ops[k], i, input)]);
    }
}

static OrtStatus *check_family(const abi_family *f)
{
    for (size_t k = 0; k < f->count; k++) {
        for (int input = 0; input < 2; input++) {
            ABI_CHECK(knows_types(f->ops[k], input), "Custom op %s has an unknown %s type", f->name,
                      input ? "input" : "output");
            ABI_CHECK(abi_op_slots(f->ops[k], input) == abi_op_slots(f->ops[0], input),
                      "Custom op %s of domain %s: its kernels have different numbers of %s",
                      f->name, f->domain, input ? "inputs" : "outputs");
        }
    }
    return NULL;
}

static OrtStatus *describe(abi_family *f)
{
    size_t size;
    ABI_TRY(check_family(f));
    FILE *out = open_memstream(&f->signature, &size);
    if (!out)
        return abi_no_memory();
    for (size_t i = 0; i < abi_op_slots(f->ops[0], true); i++)
        write_slot(out, f->ops[0], i, true);
    fputs(" -> ", out);
    for (size_t i = 0; i < abi_op_slots(f->ops[0], false); i++)
        write_slot(out, f->ops[0], i, false);
    if (fclose(out))
        return abi_no_memory();
    out = open_memstream(&f->types, &size);
    if (!out)
        return abi_no_memory();
    write_types(out, f, true);
    write_types(out, f, false);
    return fclose(out) ? abi_no_memory() : NULL;
}

/* ------------------------------------------------------------------------------------- families */

static OrtStatus *add_kernel(abi_family *f, const OrtCustomOp *op)
{
    const OrtCustomOp **ops = abi_grow(f->ops, f->count, sizeof *ops);
    if (!ops)
        return abi_no_memory();
    f->ops = ops;
    ops[f->count++] = op;
    return NULL;
}

static OrtStatus *add_family(abi_custom *custom, const char *domain, const OrtCustomOp *op)
{
    const char *name = op->GetName(op);
    int since = start_version(op);
    for (size_t i = 0; i < custom->count; i++) {
        const abi_family *f = &custom->families[i];
        if (f->since == since && !strcmp(f->name, name) && !strcmp(f->domain, domain))
            return NULL;
    }
    abi_family *families = abi_grow(custom->families, custom->count, sizeof *families);
    if (!families)
        return abi_no_memory();
    custom->families = families;
    families[custom->count++] =
        (abi_family){.custom = custom, .domain = domain, .name = name, .since = since};
    return NULL;
}

/* Kernels of the version that a family begins with: newer ones have a family of their own. */
static OrtStatus *fill_family(abi_family *f, const OrtSessionOptions *options)
{
    for (size_t d = 0; d < options->domain_count; d++) {
        const OrtCustomOpDomain *domain = options->domains[d];
        for (size_t i = 0; i < domain->count && !strcmp(domain->name, f->domain); i++) {
            const OrtCustomOp *op = domain->ops[i];
            if (runs_here(op) && !strcmp(op->GetName(op), f->name) &&
                start_version(op) <= f->since && end_version(op) >= f->since)
                ABI_TRY(add_kernel(f, op));
        }
    }
    return describe(f);
}

static OrtStatus *list_families(abi_custom *custom, const OrtSessionOptions *options)
{
    for (size_t d = 0; d < options->domain_count; d++) {
        const OrtCustomOpDomain *domain = options->domains[d];
        for (size_t i = 0; i < domain->count; i++)
            if (runs_here(domain->ops[i]))
                ABI_TRY(add_family(custom, domain->name, domain->ops[i]));
    }
    for (size_t i = 0; i < custom->count; i++)
        ABI_TRY(fill_family(&custom->families[i], options));
    return NULL;
}

/* Their results may depend on anything, as those of operators that nobody knows. */
static OrtStatus *make_rows(abi_custom *custom)
{
    custom->rows = calloc(custom->count + 1, sizeof *custom->rows);
    if (!custom->rows)
        return abi_no_memory();
    for (size_t i = 0; i < custom->count; i++) {
        const abi_family *f = &custom->families[i];
        ort_ops_row *row = &custom->rows[i];
        *row = abi_custom_functions;
        row->domain = f->domain;
        row->name = f->name;
        row->since = f->since;
        row->signature = f->signature;
        row->types = f->types;
        row->data = f;
    }
    custom->library = (ort_ops_library){.abi = ORT_OPS_ABI,
                                        .row_bytes = sizeof *custom->rows,
                                        .name = "OrtCustomOp",
                                        .rows = custom->rows,
                                        .row_count = custom->count};
    return NULL;
}

/* -------------------------------------------------------------------------------- of a session */

static OrtStatus *keep_libraries(abi_custom *custom, const OrtSessionOptions *options)
{
    custom->libraries = calloc(options->library_count + 1, sizeof *custom->libraries);
    if (!custom->libraries)
        return abi_no_memory();
    for (; custom->library_count < options->library_count; custom->library_count++) {
        abi_library *library = options->libraries[custom->library_count];
        __atomic_add_fetch(&library->users, 1, __ATOMIC_RELAXED);
        custom->libraries[custom->library_count] = library;
    }
    return NULL;
}

static OrtStatus *fill(abi_custom *custom, const OrtSessionOptions *options)
{
    ort_error err = ORT_ERROR_INIT;
    ABI_TRY(keep_libraries(custom, options));
    if (!abi_pairs_copy(&custom->config, &options->config))
        return abi_no_memory();
    ABI_TRY(list_families(custom, options));
    ABI_TRY(make_rows(custom));
    ABI_TRY(abi_env_private(custom->shared, options->own_threads ? options->intra_threads : 0,
                            &custom->env));
    if (custom->count && ort_env_add_ops(custom->env, &custom->library, &err) != ORT_OK)
        return abi_fail(ABI_INVALID_ARGUMENT, "%s", err.message);
    return NULL;
}

OrtStatus *abi_custom_new(OrtEnv *env, const OrtSessionOptions *options, abi_custom **out)
{
    if (!options->domain_count)
        return NULL;
    abi_custom *custom = calloc(1, sizeof *custom);
    if (!custom)
        return abi_no_memory();
    custom->shared = env;
    OrtStatus *status = fill(custom, options);
    if (status)
        abi_custom_free(custom);
    else
        *out = custom;
    return status;
}

void abi_custom_free(abi_custom *custom)
{
    if (!custom)
        return;
    ort_env_free(custom->env);
    for (size_t i = 0; i < custom->count; i++) {
        free(custom->families[i].ops);
        free(custom->families[i].signature);
        free(custom->families[i].types);
    }
    for (size_t i = 0; i < custom->library_count; i++)
        abi_library_release(custom->libraries[i]);
    abi_pairs_clear(&custom->config);
    free(custom->libraries);
    free(custom->families);
    free(custom->rows);
    free(custom);
}
