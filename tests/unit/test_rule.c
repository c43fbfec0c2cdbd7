/* What a row says without code (op/rule.h): element types by the signature, shapes by the rule.
 * Each line of the table is a rule, inputs, and the outputs or the refusal that it gives. Then the
 * rules of all rows are read.
 */
#include <string.h>

#include "op/rule.h"
#include "test.h"

enum { SLOTS = 12 };

/* Types as "f32[2,N,?]", "f32[...]", "-" for an absent input; `said` the same, or part of a
 * message. */
static const struct {
    const char *sig, *attrs, *rule, *in, *said;
} rows[] = {
    {"X:T -> Y:T", "", "same", "f32[2,N]", "float[2,N]"},
    {"X:T -> Y:bool", "", "same", "f32[2,?]", "bool[2,?]"},
    {"X:T -> Y:T", "", "same", "f32[...]", "float[...]"},
    {"X:T,Y?:T -> Z:T", "", "broadcast", "f32[2,1] f32[3]", "float[2,3]"},
    {"X:T,Y?:T -> Z:T", "", "broadcast", "f32[2] f32[3]", "does not broadcast"},
    {"X:T,Y:S,Z:T -> O:T", "", "broadcast 0,2", "f32[2,1] i64[7] f32[3]", "float[2,3]"},
    {"X:T,Y:T -> Z:T", "", "[M,K] [N,K] -> [M,N]", "f32[2,3] f32[B,3]", "float[2,B]"},
    {"X:T,Y:T -> Z:T", "", "[M,K] [N,K] -> [M,N]", "f32[2,3] f32[...]", "float[2,?]"},
    {"X:T,Y:T -> Z:T", "", "[M,K] [N,K] -> [M,N]", "f32[2,3] f32[5,4]",
     "dim 1 of input 1 is 4, but K is 3 elsewhere"},
    {"X:T,Y:T -> Z:T", "", "[M,K] [N,K] -> [M,N]", "f32[2,3] f32[5]",
     "input 1 is float[5], needs rank 2"},
    {"X:T,Y?:T -> Z:T,W?:i64", "", "[N,C,D..] -> [N,1^D] [D..,C*2+1]", "f32[N,3,4,5] -",
     "float[N,1,1] int64[4,5,7]"},
    {"X:T -> Z:T", "", "[N,C,D..] -> [D..]", "f32[3]", "needs rank 2 or more"},
    {"X:T -> Z:T", "", "[_,2] -> [_,2]", "f32[5,2]", "float[?,2]"},
    {"X:T -> Z:T", "", "[_,2] -> [_,2]", "f32[5,3]", "dim 1 of input 0 is 3, needs 2"},
    {"X:T,I:i64 -> Z:T", "axis:i=1", "[A..,_,B..]@axis [I..] -> [A..,I..,B..]",
     "f32[N,3,4] i64[5,6]", "float[N,5,6,4]"},
    {"X:T,I:i64 -> Z:T", "axis:i=-4", "[A..,_,B..]@axis [I..] -> [A..,I..,B..]",
     "f32[N,3,4] i64[5,6]", "axis -4 is outside [-3, 3)"},
    {"X:T -> Z:T", "a:i=3 b:i=2", "[N] -> [(N+a)/b,a-b]", "f32[6]", "float[4,1]"},
    {"X:T -> Z:T", "a:i=3 b:i=2", "[N] -> [(N+a)/b,b-a]", "f32[6]", "b-a is -1; a size is needed"},
    {"size:i64 -> Z:T", "to:i=10", "[] -> [size]:to", "i64[]", "float16[?]"},
    {"X:T -> Z:S", "to:i", "[..] -> [..]:to|X", "f32[2]", "float[2]"},
    {"X:T -> Z:T", "", "[D..] [D..] -> [nobody]", "f32[2]", "malformed rule"},
    {"X:T -> Z:T", "", "[A] -> [A", "f32[2]", "malformed rule"},
    {"X:T -> Z:T", "", "[A..] -> [A]", "f32[2]", "malformed rule"},
};

static ort_dim read_dim(ort_dim_table *dims, const char *text)
{
    return *text == '?'                   ? ort_dim_unknown()
           : *text >= '0' && *text <= '9' ? ort_dim_of(*text - '0') : ort_dim_symbol(dims, text);
}

/* The first type of a list that blanks part; false where it is absent. */
static bool read_type(const char *p, ort_dim_table *dims, ort_fact *fact)
{
    char code[16], name[16];
    ort_dim dim[8];
    int rank = strstr(p, "[...]") == p + 3 ? -1 : 0;
    size_t length = strcspn(p, "[ ");
    snprintf(code, sizeof code, "%.*s", (int)length, p);
    for (p += length; rank >= 0 && (*p == '[' || *p == ','); p += length) {
        length = strcspn(++p, ",]");
        snprintf(name, sizeof name, "%.*s", (int)length, p);
        if (length)
            dim[rank++] = read_dim(dims, name);
    }
    *fact = (ort_fact){.type = ort_type_tensor(ort_dtype_find(code), rank, dim)};
    return *code != '-';
}

static void format_outputs(const ort_infer *x, char *text, size_t size)
{
    size_t used = 0;
    char type[200];
    *text = '\0';
    for (int i = 0; i < x->out_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 ort_type_format(x->dims, &x->out[i].type, type, sizeof type));
}

static void table(test_state *test)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ort_op op = {.domain = "", .name = "Op", .since = 1, .sig = rows[i].sig,
                     .types = "T:f32,f64 S:f32,i64", .attrs = rows[i].attrs};
        ort_node node = {.op = &op};
        ort_fact in[SLOTS], out[SLOTS] = {0};
        const ort_fact *list[SLOTS];
        ort_infer x = {.node = &node, .op = &op, .in = list, .out = out,
                       .dims = ort_dim_table_new()};
        ort_error err = ORT_ERROR_INIT;
        char text[400];
        for (const char *p = rows[i].in; *p; p += strcspn(p, " "), p += *p == ' ') {
            ort_fact *fact = &in[x.in_count];
            list[x.in_count++] = read_type(p, x.dims, fact) ? fact : NULL;
        }
        x.out_count = strchr(strstr(op.sig, "->"), ',') ? 2 : 1;
        ort_infer_signature(&x);
        if (ort_infer_rule(&x, rows[i].rule, &err) == ORT_OK)
            format_outputs(&x, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", err.message);
        if (!strstr(text, rows[i].said))
            printf("# row %zu: %s\n", i, text);
        CHECK(strstr(text, rows[i].said));
        ort_dim_table_free(x.dims);
    }
}

/* Every name of a rule is one of its row. */
static void rows_are_well_formed(test_state *test)
{
    ort_registry *registry = NULL;
    int count = 0;
    CHECK(!ort_registry_new(&registry, NULL));
    for (size_t i = 0; i < ort_registry_count(registry); i++) {
        const ort_op *op = ort_registry_at(registry, i);
        ort_node node = {.op = op};
        ort_fact out[SLOTS] = {0};
        const ort_fact *in[SLOTS] = {NULL};
        ort_infer x = {.node = &node, .op = op, .in = in, .out = out, .in_count = SLOTS,
                       .out_count = SLOTS};
        ort_error err = ORT_ERROR_INIT;
        if (!op->impl || !op->impl->rule)
            continue;
        count++;
        ort_infer_signature(&x);
        if (ort_infer_rule(&x, op->impl->rule, &err) == ORT_ERROR_RUN)
            CHECK_TEXT(err.message, "");
    }
    CHECK(count > 300);
    ort_registry_free(registry);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, table);
    RUN(&test, rows_are_well_formed);
    return test.failures != 0;
}
