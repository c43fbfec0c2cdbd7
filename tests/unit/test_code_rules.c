/* test_code_rules.c - overrides: what is read, and what is refused with its place. */
#include "net.h"
#include "quantize/node_names.h"
#include "quantize/place/code_rules.h"
#include "test.h"

static bool refused(const char *text, const char *part)
{
    ort_error err = {0};
    ort_code_rules rules = {0};
    bool ok = ort_code_rules_parse(text, &rules, &err) == ORT_ERROR_USAGE &&
              strstr(err.message, part);
    if (!ok)
        fprintf(stderr, "%s: %s\n", text, err.message);
    ort_code_rules_release(&rules);
    return ok;
}

static bool rule_refused(const char *rule, const char *part)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"schema\":\"ort-overrides/1\",\"overrides\":[{\"node\":\"a\"},{%s}]}", rule);
    return refused(text, part);
}

static void reads(test_state *test)
{
    static const char text[] =
        "{\"schema\": \"ort-overrides/1\", \"overrides\": ["
        "{\"node\": \"conv_*\", \"type\": \"float\"},"
        "{\"operator\": \"MatMul\", \"type\": \"uint16\", \"weights\": \"int4\","
        " \"per_channel\": true, \"symmetric\": false},"
        "{\"value\": \"x\", \"observer\": \"percentile\", \"percentile\": 99.5,"
        " \"range\": [-1, 2.5]}]}";
    ort_error err = {0};
    ort_code_rules rules = {0};
    CHECK(!ort_code_rules_parse(text, &rules, &err) && rules.list.count == 3);
    const ort_code_rule *r = rules.list.data;
    CHECK(r[0].of == ORT_RULE_NODE && r[0].spec.type == ORT_DTYPE_FLOAT);
    CHECK(r[1].of == ORT_RULE_OPERATOR && r[1].spec.type == ORT_DTYPE_UINT16);
    CHECK(r[1].spec.weights == ORT_DTYPE_INT4 && r[1].spec.per_channel == 1);
    CHECK(r[1].spec.symmetric == 0 && r[1].spec.observer == -1);
    CHECK(r[2].of == ORT_RULE_VALUE && r[2].spec.observer == ORT_OBSERVE_PERCENTILE);
    CHECK(r[2].spec.has_range && r[2].spec.most > 2.4f);
    CHECK(ort_code_rules_observe(&rules));
    ort_code_rules_release(&rules);
    CHECK(!ort_code_rules_parse(NULL, &rules, &err) && rules.list.count == 0);
}

static void refuses(test_state *test)
{
    CHECK(refused("{", "no JSON"));
    CHECK(refused("[]", "schema"));
    CHECK(refused("{\"schema\":\"ort-overrides/2\",\"overrides\":[]}", "ort-overrides/1"));
    CHECK(refused("{\"schema\":\"ort-overrides/1\",\"rules\":[]}", "rules"));
    CHECK(refused("{\"schema\":\"ort-overrides/1\",\"overrides\":{}}", "no list"));
    CHECK(rule_refused("\"node\":\"b\",\"typ\":\"int8\"", "did you mean 'type'"));
    CHECK(rule_refused("\"type\":\"int8\"", "overrides[1]: it names nothing"));
    CHECK(rule_refused("\"node\":\"b\",\"value\":\"c\"", "not two"));
    CHECK(rule_refused("\"node\":\"b\",\"type\":\"int32\"", "allowed: int8, uint8"));
    CHECK(rule_refused("\"node\":\"b\",\"weights\":\"float\"", "\"weights\" is"));
    CHECK(rule_refused("\"node\":\"b\",\"symmetric\":1", "true, false"));
    CHECK(rule_refused("\"node\":\"b\",\"observer\":\"max\"", "min-max"));
    CHECK(rule_refused("\"node\":\"b\",\"percentile\":101", "at most 100"));
    CHECK(rule_refused("\"node\":\"b\",\"range\":[1,2]", "least <= 0"));
    CHECK(rule_refused("\"node\":\"b\",\"range\":[-1]", "[least, most]"));
    CHECK(rule_refused("\"value\":\"b\",\"weights\":\"int4\"", "are of nodes"));
    CHECK(rule_refused("\"value\":\"b\",\"type\":\"float16\"", "what nodes compute in"));
    CHECK(rule_refused("\"node\":\"b\",\"weights\":\"float16\"", "allowed: int8, uint8"));
    CHECK(rule_refused("\"node\":\"b\",\"type\":\"bfloat16\"", "allowed: int8, uint8"));
}

static void matches(test_state *test)
{
    CHECK(ort_name_matches("a*c", "abbbc") && ort_name_matches("*", ""));
    CHECK(ort_name_matches("/m/conv?/*", "/m/conv1/y") && !ort_name_matches("a?c", "abbc"));
    CHECK(ort_name_matches("*ab", "aab") && !ort_name_matches("ab", "abc"));
    CHECK(ort_name_matches("conv[0]", "conv[0]"));
    ort_node node = {.op_type = "Conv", .name = "first", .origin = "left+right"};
    CHECK(ort_node_is_named(&node, "Co*") && ort_node_is_named(&node, "first"));
    CHECK(ort_node_is_named(&node, "right") && !ort_node_is_named(&node, "eft"));
}

int main(void)
{
    test_state test = {0};
    RUN(&test, reads);
    RUN(&test, refuses);
    RUN(&test, matches);
    return test.failures != 0;
}
