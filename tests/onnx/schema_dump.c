/* schema_dump.c - prints every row of the operator registry, tab-separated: domain, name, since,
 * signature, types, attributes, deprecated, runs, extension. check_schema.py holds them against
 * the ONNX specification.
 */
#include <stdio.h>

#include "op/op.h"

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
        printf("%s\t%s\t%d\t%s\t%s\t%s\t%d\t%d\t%d\n", op->domain, op->name, op->since, op->sig,
               op->types, op->attrs, (op->traits & ORT_TRAIT_DEPRECATED) != 0,
               op->impl != NULL && (op->impl->run != NULL || (op->traits & ORT_TRAIT_ALIAS) != 0),
               (op->traits & ORT_TRAIT_EXTENSION) != 0);
    }
    ort_registry_free(registry);
    return 0;
}
