/* test_history.c - versions that a row's history names, and what rows say of attributes that a node
 * leaves out.
 */
#include <string.h>

#include "op/op.h"
#include "test.h"

static ort_registry *registry;

static const ort_op *find(const char *name, int version)
{
    return ort_registry_find(registry, ONNX, name, version);
}

static bool has_attr(const ort_op *op, const char *name)
{
    static ort_schema schema;
    if (ort_schema_parse(op, &schema, NULL))
        return false;
    for (int i = 0; i < schema.attr_count; i++)
        if (!strcmp(schema.attrs[i].name, name))
            return true;
    return false;
}

static bool allows(const ort_op *op, const char *variable, ort_dtype dtype)
{
    const ort_type type = {.kind = ORT_TYPE_TENSOR, .dtype = dtype, .rank = -1};
    return ort_schema_allows(op, variable, &type);
}

static void versions(test_state *test)
{
    static const struct {
        const char *name;
        int asked, since;
    } rows[] = {{"Reshape", 5, 5},   {"Reshape", 13, 13}, {"Reshape", 17, 14}, {"Reshape", 28, 25},
                {"Squeeze", 10, 1},  {"Squeeze", 12, 11}, {"Squeeze", 20, 13}, {"Squeeze", 21, 21},
                {"Dropout", 11, 10}, {"Mod", 28, 28}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(find(rows[i].name, rows[i].asked)->since == rows[i].since);
    CHECK(!find("Reshape", 4) && ort_registry_oldest(registry, ONNX, "Reshape") == 5);
    CHECK(find("Reshape", 13) == find("Reshape", 13) && find("Reshape", 14) != find("Reshape", 13));
    CHECK(find("Reshape", 13)->impl == find("Reshape", 5)->impl);
}

static void additions(test_state *test)
{
    char text[400];
    CHECK(!has_attr(find("Reshape", 13), "allowzero"));
    CHECK(has_attr(find("Reshape", 14), "allowzero"));
    CHECK(has_attr(find("Reshape", 25), "allowzero") && has_attr(find("Cast", 24), "round_mode"));
    CHECK(!allows(find("Reshape", 5), "T", ORT_DTYPE_BFLOAT16));
    CHECK(allows(find("Reshape", 13), "T", ORT_DTYPE_BFLOAT16));
    CHECK(!allows(find("Reshape", 20), "T", ORT_DTYPE_INT4));
    CHECK(allows(find("Reshape", 21), "T", ORT_DTYPE_INT4));
    CHECK(allows(find("Reshape", 25), "T", ORT_DTYPE_FLOAT) &&
          allows(find("Cast", 21), "T2", ORT_DTYPE_INT4));
    ort_schema_format_types(find("Relu", 13), "T", text, sizeof text);
    CHECK_TEXT(text, "f16,f32,f64,bf16");
    ort_schema_format_types(find("Relu", 6), "T", text, sizeof text);
    CHECK_TEXT(text, "f16,f32,f64");
}

static void defaults(test_state *test)
{
    ort_node node = {.op = find("Softmax", 11)};
    CHECK(ort_node_attr_int(&node, "axis") == 1);
    node.op = find("Softmax", 13);
    CHECK(ort_node_attr_int(&node, "axis") == -1);
    ort_attr axis = {.name = "axis", .type = ORT_ATTR_INT, .i = 2};
    node.attrs = &axis;
    node.attr_count = 1;
    CHECK(ort_node_attr_int(&node, "axis") == 2);
    node.op = find("Resize", 18);
    CHECK(ort_node_attr_is(&node, "mode", "nearest") && !ort_node_attr_is(&node, "mode", "near"));
    CHECK(ort_node_attr_is(&node, "nearest_mode", "round_prefer_floor"));
    CHECK(ort_node_attr_is(&node, "keep_aspect_ratio_policy", "stretch"));
    CHECK(ort_node_attr_float(&node, "cubic_coeff_a") == -0.75f);
    CHECK(ort_node_attr_int(&node, "antialias") == 0);
    node.op = find("Selu", 22);
    CHECK(ort_node_attr_float(&node, "gamma") == 1.05070102f);
    node.op = find("MeanVarianceNormalization", 1);
    CHECK(ort_node_attr_int(&node, "normalize_variance") == 1);
    node.op = find("Cast", 13); /* required, but missing */
    CHECK(ort_node_attr_int(&node, "to") == 0);
    node.op = NULL;
    CHECK(ort_node_attr_int(&node, "to") == 0 && ort_node_attr_is(&node, "mode", ""));
}

/* Each version of the list is the one that a look-up gives, and they stand in order. */
static void listed(test_state *test)
{
    size_t count = ort_registry_count(registry), wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const ort_op *op = ort_registry_at(registry, i), *next = op;
        const ort_op *found = ort_registry_find(registry, op->domain, op->name, op->since);
        if (i + 1 < count)
            next = ort_registry_at(registry, i + 1);
        wrong += found != (op->traits & ORT_TRAIT_DEPRECATED ? NULL : op);
        wrong += next != op && !strcmp(next->name, op->name) &&
                 !strcmp(next->domain, op->domain) && next->since <= op->since;
    }
    CHECK(count > 700 && wrong == 0);
}

static ort_status no_run(ort_ops_node *node, void *state, ort_error *err)
{
    return ORT_OK;
}

/* Sessions hold rows that were found before a library came. */
static void kept(test_state *test)
{
    static const ort_ops_row row = {.domain = "test", .name = "A", .since = 1,
                                    .signature = "X:f32 -> Y:f32", .run = no_run};
    static const ort_ops_library library = {.abi = 1, .row_bytes = sizeof row, .name = "kept",
                                            .rows = &row, .row_count = 1};
    const ort_op *before = find("Reshape", 14), *first = find("Reshape", 5);
    size_t count = ort_registry_count(registry);
    CHECK(ort_registry_add(registry, &library, NULL) == ORT_OK);
    CHECK(find("Reshape", 14) == before && find("Reshape", 5) == first);
    CHECK(find("Reshape", 21)->since == 21 && ort_registry_count(registry) == count + 1);
    CHECK(ort_registry_find(registry, "test", "A", 3)->since == 1);
}

int main(void)
{
    test_state test = {.failures = 0};
    if (ort_registry_new(&registry, NULL))
        return 1;
    RUN(&test, versions);
    RUN(&test, additions);
    RUN(&test, defaults);
    RUN(&test, listed);
    RUN(&test, kept);
    RUN(&test, listed);
    ort_registry_free(registry);
    return test.failures != 0;
}
