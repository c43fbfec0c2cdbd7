/* check_function.c - the functions of a message (check_message.h): what each says of itself,
 * whether a call reaches it or not. */
#include <stdio.h>
#include <string.h>

#include "graph/build.h"
#include "op/check/check.h"
#include "op/check/check_message.h"

static void check_repeated(ort_message_check *c, char *const *names, size_t count,
                           const char *what, const char *place)
{
    ort_hashmap seen = {0};
    for (size_t i = 0; i < count; i++) {
        if (!*names[i])
            ort_findings_add(c->findings, ORT_FINDING_ERROR, "%s%s %zu has no name", place, what,
                             i);
        else if (!ort_check_first(c, &seen, names[i]))
            ort_findings_add(c->findings, ORT_FINDING_ERROR, "%s%s '%s' is listed twice", place,
                             what, names[i]);
    }
    ort_hashmap_release(&seen);
}

/* An output that is an input as well: runtimes differ. */
static void check_passed(ort_message_check *c, const Onnx__FunctionProto *f,
                         const ort_name_scope *inputs, const char *place)
{
    for (size_t i = 0; i < f->n_output; i++)
        if (ort_hashmap_get_str(&inputs->names, f->output[i], NULL))
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%soutput '%s' is an input: pass it through an Identity", place,
                             f->output[i]);
}

/* The first import of a domain among so many. */
static const Onnx__OperatorSetIdProto *import_of(const Onnx__FunctionProto *f, size_t count,
                                                 const char *domain)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(ort_build_domain(f->opset_import[i]->domain), domain))
            return f->opset_import[i];
    return NULL;
}

/* A domain with two versions: runtimes differ. */
static void check_imported_once(ort_message_check *c, const Onnx__FunctionProto *f,
                                const char *place)
{
    for (size_t i = 0; i < f->n_opset_import; i++) {
        const char *domain = ort_build_domain(f->opset_import[i]->domain);
        const Onnx__OperatorSetIdProto *first = import_of(f, i, domain);
        if (first)
            ort_findings_add(c->findings,
                             first->version == f->opset_import[i]->version ? ORT_FINDING_WARNING
                                                                           : ORT_FINDING_ERROR,
                             "%sopset '%s' is imported twice", place,
                             *domain ? domain : "ai.onnx");
    }
}

static void check_function_imports(ort_message_check *c, const Onnx__FunctionProto *f,
                                   const char *place)
{
    for (size_t i = 0; i < f->n_node; i++) {
        const char *domain = ort_build_domain(f->node[i]->domain);
        if (import_of(f, f->n_opset_import, domain))
            continue;
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sthe function imports no opset of domain '%s', whose operator %s it "
                         "uses",
                         place, *domain ? domain : "ai.onnx", ort_check_text(f->node[i]->op_type));
        return;
    }
}

/* A version of its own is right here; onnx.checker refuses it where an operator has changed. */
static void check_function_versions(ort_message_check *c, const Onnx__FunctionProto *f,
                                    const char *place)
{
    for (size_t i = 0; i < f->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = f->opset_import[i];
        const char *domain = ort_build_domain(o->domain);
        int64_t own = ort_model_opset(c->model, domain), newest = ort_check_newest(domain);
        if (o->version < 1)
            ort_findings_add(c->findings, ORT_FINDING_ERROR, "%sopset '%s' has version %lld",
                             place, *domain ? domain : "ai.onnx", (long long)o->version);
        else if (o->version > newest || (own && own != o->version))
            ort_findings_add(c->findings,
                             o->version > newest && own != o->version ? ORT_FINDING_ERROR
                                                                      : ORT_FINDING_WARNING,
                             "%simports opset %lld of '%s', %s %lld: not every runtime runs both",
                             place, (long long)o->version, *domain ? domain : "ai.onnx",
                             own && own != o->version ? "the model" : "the newest known is",
                             (long long)(own && own != o->version ? own : newest));
    }
}

static void check_references(ort_message_check *c, const Onnx__FunctionProto *f, const char *place)
{
    ort_hashmap known = {0};
    for (size_t i = 0; i < f->n_attribute; i++)
        (void)ort_check_first(c, &known, f->attribute[i]);
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        (void)ort_check_first(c, &known, ort_check_text(f->attribute_proto[i]->name));
    for (size_t i = 0; i < f->n_node; i++)
        for (size_t k = 0; k < f->node[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = f->node[i]->attribute[k];
            if (a->ref_attr_name && *a->ref_attr_name &&
                !ort_hashmap_get_str(&known, a->ref_attr_name, NULL))
                ort_findings_add(c->findings, ORT_FINDING_ERROR,
                                 "%snode #%zu (%s): attribute '%s' refers to '%s', which the "
                                 "function doesn't have",
                                 place, i, ort_check_text(f->node[i]->op_type),
                                 ort_check_text(a->name), a->ref_attr_name);
        }
    ort_hashmap_release(&known);
}

void ort_check_function(ort_message_check *c, const Onnx__FunctionProto *f)
{
    char place[200];
    ort_name_scope scope = {0};
    snprintf(place, sizeof place, "function '%.100s': ", ort_check_text(f->name));
    if (!*ort_check_text(f->name) || !*ort_check_text(f->domain))
        ort_findings_add(c->findings, ORT_FINDING_WARNING, "%sthere is no %s", place,
                         *ort_check_text(f->name) ? "domain" : "name");
    check_repeated(c, f->input, f->n_input, "input", place);
    check_repeated(c, f->output, f->n_output, "output", place);
    check_repeated(c, f->attribute, f->n_attribute, "attribute", place);
    for (size_t i = 0; i < f->n_input; i++)
        ort_check_know(c, &scope, f->input[i]);
    check_passed(c, f, &scope, place);
    check_imported_once(c, f, place);
    check_function_imports(c, f, place);
    check_function_versions(c, f, place);
    check_references(c, f, place);
    for (size_t i = 0; i < f->n_attribute_proto; i++) {
        ort_check_attribute(c, f->attribute_proto[i], place);
        ort_check_bodies(c, f->attribute_proto[i]);
    }
    c->in_function = true;
    ort_check_nodes(c, f->node, f->n_node, &scope, false, place);
    c->in_function = false;
    ort_hashmap_release(&scope.names);
}
