/* test_stamp.c - what a quantized model says about how it was made. */
#include "graph/override.h"
#include "net.h"
#include "quantize/stamp.h"
#include "test.h"

static void says_how(test_state *test)
{
    net n;
    ort_error err = {0};
    char expected[128];
    CHECK(net_init(&n, NULL));
    ort_quantize_stamp stamp = {"static", "--symmetric", "made up, seed 7", "scalar"};
    CHECK(!ort_quantize_stamp_model(n.model, &stamp, &err));
    snprintf(expected, sizeof expected,
             "%s; options: --symmetric; samples: made up, seed 7; tier: scalar", ort_version());
    CHECK(!strcmp(ort_graph_metadata(n.model, "ort.quantize.static"), expected));
    CHECK(!ort_graph_metadata(n.model, "ort.quantize.weights"));
    net_free(&n);
}

static void keeps_what_was_said(test_state *test)
{
    net n;
    ort_error err = {0};
    char expected[128];
    CHECK(net_init(&n, NULL));
    ort_quantize_stamp first = {"weights", "--bits 4", NULL, "common"}; /* isn't told */
    ort_quantize_stamp second = {"weights", "", "", ""};
    CHECK(!ort_quantize_stamp_model(n.model, &first, &err));
    CHECK(!ort_quantize_stamp_model(n.model, &second, &err));
    snprintf(expected, sizeof expected, "%s < %s; options: --bits 4", ort_version(), ort_version());
    CHECK(!strcmp(ort_graph_metadata(n.model, "ort.quantize.weights"), expected));
    net_free(&n);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, says_how);
    RUN(&test, keeps_what_was_said);
    return test.failures != 0;
}
