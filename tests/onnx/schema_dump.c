/* schema_dump.c - prints every version of every operator of the registry, tab-separated: domain,
 * name, since, signature, types, attributes, deprecated, runs, extension; types and attributes with
 * what histories add. check_schema.py holds them against the ONNX specification.
 */
#include <stdio.h>
#include <string.h>

#include "op/op.h"

static void print_types(const ort_op *op)
{
    for (const char *p = op->types; *p != '\0'; p += strspn(p, " ")) {
        char name[32], types[2000];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ":"), p);
        printf("%s:%s ", name, ort_schema_format_types(op, name, types, sizeof types));
        p += strcspn(p, " ");
    }
}

static void print_attrs(const ort_schema *schema)
{
    static const char *const kinds[] = {
        [ORT_ATTR_FLOAT] = "f",          [ORT_ATTR_INT] = "i",      [ORT_ATTR_STRING] = "s",
        [ORT_ATTR_TENSOR] = "t",         [ORT_ATTR_GRAPH] = "g",    [ORT_ATTR_FLOATS] = "fs",
        [ORT_ATTR_INTS] = "is",          [ORT_ATTR_STRINGS] = "ss", [ORT_ATTR_TENSORS] = "ts",
        [ORT_ATTR_SPARSE_TENSOR] = "sp", [ORT_ATTR_TYPE_PROTO] = "tp",
    };
    for (int i = 0; i < schema->attr_count; i++) {
        const ort_attr_spec *a = &schema->attrs[i];
        printf("%s:%s%s%s ", a->name, kinds[a->type],
               a->required ? "!" : a->fallback[0] ? "=" : "", a->fallback);
    }
}

int main(void)
{
    ort_registry *registry = NULL;
    ort_error err = {0};
    if (ort_registry_new(&registry, &err) != ORT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < ort_registry_count(registry); i++) {
        const ort_op *op = ort_registry_at(registry, i);
        ort_schema schema;
        if (ort_schema_parse(op, &schema, &err) != ORT_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        printf("%s\t%s\t%d\t%s\t", op->domain, op->name, op->since, op->sig);
        print_types(op);
        printf("\t");
        print_attrs(&schema);
        printf("\t%d\t%d\t%d\n", (op->traits & ORT_TRAIT_DEPRECATED) != 0,
               op->impl != NULL && (op->impl->run != NULL || (op->traits & ORT_TRAIT_ALIAS) != 0),
               (op->traits & ORT_TRAIT_EXTENSION) != 0);
    }
    ort_registry_free(registry);
    return 0;
}
