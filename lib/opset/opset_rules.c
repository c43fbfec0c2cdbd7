/* opset_rules.c - which rules apply at a border between versions. */
#include <string.h>

#include "opset/opset.h"

static const ort_opset_rule *const families[] = {
    ort_opset_axes,  ort_opset_broadcast, ort_opset_windows,   ort_opset_norms,
    ort_opset_types, ort_opset_expand,    ort_opset_attention, ort_opset_legacy,
};

static bool has_work(const ort_opset_rule *rule, const char *op_type, int version, bool up)
{
    return rule->since == version && !strcmp(rule->op_type, op_type) &&
           (up ? rule->up || rule->text_up : rule->down || rule->text_down);
}

static void apply(ort_opset_step *s, const ort_opset_rule *rule)
{
    void (*edit)(ort_opset_step *) = s->up ? rule->up : rule->down;
    if (edit)
        edit(s);
    else
        ort_opset_replace_text(s, s->up ? rule->text_up : rule->text_down);
}

void ort_opset_apply_rules(ort_opset_step *s)
{
    const char *op_type = s->node->op_type;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const ort_opset_rule *rule = families[i]; rule->op_type; rule++)
            if (has_work(rule, op_type, s->version, s->up) && !s->replaced && !s->blocked &&
                s->g.status == ORT_OK)
                apply(s, rule);
    if (!s->replaced && !s->blocked && s->g.status == ORT_OK)
        ort_opset_move(s);
}

bool ort_opset_has_rule(const char *op_type, int version, bool up)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const ort_opset_rule *rule = families[i]; rule->op_type; rule++)
            if (has_work(rule, op_type, version, up))
                return true;
    return ort_opset_has_move(op_type, version);
}
