/* test_rewrites.c - every row that passes find and write (pass/rewrite.h), tested by itself: what
 * it finds is built, in each alternative of its named forms, over random inputs of several shapes
 * and types until the pass takes it, and what it writes then computes the same. A row, or an
 * alternative, that no random input reaches fails.
 *
 * ort_rewrite.example narrows the draw, in words between blanks:
 *
 *     x:2,3,4  b:4.i64   a value or constant of these dims (and type); float without one
 *     e=0.001  e=1:2,3   a constant of one number, everywhere in these dims
 *     s=[0,2]            a constant list of int64
 *     Clip.min=0.0       an attribute of every node of that operator
 *     opset=17           of the model, instead of one of several
 *     t#3,4              as t:3,4, and constant although the row doesn't ask for it
 *     ; l,h = (Split x)  at the end, statements before what the row finds
 */
#include <limits.h>
#include <math.h>

#include "emit/write.h"
#include "pass/rewrite.h"
#include "pass_count.h"
#include "test.h"

enum { DEPTH = 16, ATTEMPTS = 400, INPUTS = 12, FITS = 8 };

typedef struct build {
    net n;
    uint64_t state;     /* of the draw */
    const char *example;
    int rank;           /* of what has no dims of its own */
    int64_t dims[4];
    ort_dtype dtype;
    int digit[DEPTH], radix[DEPTH], depth; /* the alternatives that are taken, in order */
    ort_value *inputs[INPUTS];
    int input_count;
    int64_t lists[8][ORT_MAX_RANK]; /* of attributes */
} build;

static unsigned draw(build *b, unsigned limit)
{
    b->state = b->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(b->state >> 33) % limit;
}

/* ---- the example */

/* What follows "name" and one of the marks in the example; NULL. */
static const char *hint(const build *b, const char *name, size_t length, const char *marks)
{
    for (const char *at = b->example; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, name, length) && at[length] && strchr(marks, at[length]))
            return at + length;
    return NULL;
}

/* "2,3,4" */
static int read_list(const char *text, int64_t *list)
{
    int count = 0;
    while (count < ORT_MAX_RANK && (*text == '-' || (*text >= '0' && *text <= '9'))) {
        char *end;
        list[count++] = strtoll(text, &end, 10);
        text = end + (*end == ',');
    }
    return count;
}

/* ---- values */

static double number_of(build *b, ort_dtype dtype)
{
    double number = (double)draw(b, 4001) / 1000 - 2;
    return ort_dtype_get(dtype)->class_ == ORT_CLASS_FLOAT ? number : floor(number + 2);
}

static ort_value *random_value(build *b, ort_dtype dtype, int rank, const int64_t *dims)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &value, NULL) != ORT_OK)
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(value, i, number_of(b, dtype));
    return value;
}

static ort_id keep_constant(build *b, const char *name, ort_value *value)
{
    ort_id id = ORT_ID_NONE;
    if (value && ort_edit_add_constant(b->n.graph, name, &value->tensor, &id, NULL) != ORT_OK)
        id = ORT_ID_NONE;
    ort_value_free(value);
    return id;
}

/* "=0.001", "=1:2,3", "=[0,2]" */
static ort_id stated_constant(build *b, const char *name, const char *text)
{
    int64_t list[ORT_MAX_RANK], dims[ORT_MAX_RANK];
    if (text[1] == '[') {
        int64_t count = read_list(text + 2, list);
        return net_constant(&b->n, name, ORT_DTYPE_INT64, 1, &count, list);
    }
    char *end;
    double number = strtod(text + 1, &end);
    int rank = *end == ':' ? read_list(end + 1, dims) : 0;
    ort_value *value = random_value(b, net_type_called(end, b->dtype), rank, dims);
    for (int64_t i = 0; value && i < ort_value_count(value); i++)
        ort_value_set_double(value, i, number);
    return keep_constant(b, name, value);
}

/* One number, one for each of the last dimension, for each channel, or for each element. */
static ort_id drawn_constant(build *b, const char *name)
{
    int64_t dims[4] = {1, 1, 1, 1};
    int rank = (int)draw(b, 4) ? b->rank : 0, first = rank;
    switch (draw(b, 4)) {
    case 0: rank = 0; break;
    case 1: first = b->rank - 1; break;
    case 2: first = 0; break;
    default: first = b->rank > 1 ? 1 : 0;
    }
    for (int d = first; d < rank; d++)
        dims[d] = b->dims[d];
    int skip = rank && draw(b, 2) ? first : 0;
    return keep_constant(b, name, random_value(b, b->dtype, rank - skip, dims + skip));
}

static ort_id add_input(build *b, const char *name, const char *hinted)
{
    int64_t dims[ORT_MAX_RANK];
    int rank = hinted ? read_list(hinted + 1, dims) : b->rank;
    ort_dtype dtype = hinted ? net_type_called(hinted, b->dtype) : b->dtype;
    assert(b->input_count < INPUTS);
    b->inputs[b->input_count++] = random_value(b, dtype, rank, hinted ? dims : b->dims);
    return net_input(&b->n, name, dtype, rank, hinted ? dims : b->dims);
}

/* ort_write_source.unbound */
static ort_id unbound(void *arg, const ort_term *t, const ort_text_name *name)
{
    build *b = arg;
    char word[32];
    snprintf(word, sizeof word, "%.*s", name ? name->length : 1, name ? name->text : "_");
    const char *text = hint(b, word, strlen(word), "=:#");
    if (text && *text == '=')
        return stated_constant(b, word, text);
    if (t->kind == '$') /* one number */
        return keep_constant(b, word, random_value(b, b->dtype, 0, NULL));
    if (t->kind != '#' && (!text || *text != '#'))
        return add_input(b, word, text);
    int64_t dims[ORT_MAX_RANK];
    return text ? keep_constant(b, word, random_value(b, net_type_called(text, b->dtype),
                                                      read_list(text + 1, dims), dims))
                : drawn_constant(b, word);
}

/* ort_write_source.alternative */
static int alternative(void *arg, const ort_term *t, int count)
{
    build *b = arg;
    assert(b->depth < DEPTH);
    b->radix[b->depth] = count;
    return b->digit[b->depth++];
}

/* ort_write_source.attributes: "Op.name=value" */
static int attributes(void *arg, const char *op_type, ort_attr *set, int room)
{
    build *b = arg;
    size_t length = strlen(op_type);
    int count = 0;
    for (const char *at = b->example; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        static char names[8][32];
        if (strncmp(at, op_type, length) || at[length] != '.' || count == room || count == 8)
            continue;
        const char *name = at + length + 1, *value = strchr(name, '=') + 1;
        snprintf(names[count], sizeof names[count], "%.*s", (int)(value - 1 - name), name);
        ort_attr *a = &set[count];
        *a = (ort_attr){.name = names[count]};
        if (strcspn(value, ",") < strcspn(value, " ")) {
            a->type = ORT_ATTR_INTS;
            a->ints = b->lists[count];
            a->count = (size_t)read_list(value, b->lists[count]);
        } else if (strcspn(value, ".") < strcspn(value, " ")) {
            a->type = ORT_ATTR_FLOAT;
            a->f = strtof(value, NULL);
        } else {
            a->type = ORT_ATTR_INT;
            a->i = strtoll(value, NULL, 10);
        }
        count++;
    }
    return count;
}

/* ---- a model */

static bool draw_model(build *b, uint64_t seed)
{
    static const int opsets[] = {23, 17, 13, 10, 24};
    static const ort_dtype types[] = {ORT_DTYPE_FLOAT, ORT_DTYPE_FLOAT, ORT_DTYPE_FLOAT16,
                                      ORT_DTYPE_BOOL, ORT_DTYPE_INT64};
    static const int64_t shapes[][4] = {{2, 3, 4, 5}, {1, 4, 2, 2}, {3, 8, 1, 6}};
    const char *opset = hint(b, "opset", 5, "=");
    ort_opset contrib = {.domain = MS, .version = 1};
    b->state = seed * 977 + 1;
    for (int i = 0; i < 4; i++)
        draw(b, 2);
    const int64_t *shape = shapes[draw(b, 3)];
    b->rank = 1 + (int)draw(b, 4);
    memcpy(b->dims, shape, sizeof b->dims);
    b->dtype = b->example ? ORT_DTYPE_FLOAT : types[draw(b, 5)];
    b->depth = b->input_count = 0;
    if (!net_init(&b->n, NULL))
        return false;
    b->n.model->opsets.data[0].version = opset ? atoi(opset + 1) : opsets[draw(b, 5)];
    b->n.model->ir_version = 10;
    return ort_vec_push(&b->n.model->opsets, contrib);
}

static bool write_model(build *b, const ort_text *from, const ort_choice *choice)
{
    int opset = (int)ort_model_opset(b->n.model, "");
    ort_emit e = {.graph = b->n.graph, .stem = "n", .purpose = "model", .opset = opset,
                  .limit = INT_MAX};
    ort_write_source source = {.unbound = unbound, .alternative = alternative,
                               .attributes = attributes, .arg = b};
    ort_writer w = {.e = &e, .text = from, .source = &source, .like = ORT_ID_NONE};
    ort_id y = ort_write(&w, choice);
    if (e.status != ORT_OK || y == ORT_ID_NONE)
        return false;
    net_output(&b->n, b->n.graph->values.data[y]->name);
    return true;
}

static void drop(build *b)
{
    for (int i = 0; i < b->input_count; i++)
        ort_value_free(b->inputs[i]);
    b->input_count = 0;
    net_free(&b->n);
}

/* What is NaN all over would agree with anything that is. */
static bool says_something(const ort_value *y)
{
    for (int64_t i = 0; i < ort_value_count(y); i++)
        if (!isnan(ort_value_get_double(y, i)))
            return true;
    return false;
}

static bool agree(ort_session *before, ort_session *after, build *b)
{
    const ort_graph *graph = b->n.model->graph;
    ort_dtype dtype = graph->values.data[graph->outputs.data[0]]->fact.type.dtype;
    double tolerance = dtype == ORT_DTYPE_FLOAT16 ? 1e-2 : 2e-4;
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *y = NULL, *z = NULL;
    bool ok = run_whole(before, b->inputs, &y, NULL, NULL) == ORT_OK &&
              run_whole(after, b->inputs, &z, NULL, NULL) == ORT_OK &&
              ort_value_compare(z, y, &options, &difference, NULL) == ORT_OK && difference.equal &&
              says_something(y);
    ort_value_free(y);
    ort_value_free(z);
    return ok;
}

typedef enum outcome { NOT_TAKEN, SAME, OTHER } outcome;

/* One draw of the row in the alternatives of b->digit. */
static outcome try_row(build *b, const ort_pass *pass, const ort_text *from,
                       const ort_choice *choice, uint64_t seed)
{
    const ort_pass *const table[] = {pass, NULL};
    int changes = 0;
    outcome result = NOT_TAKEN;
    ort_error err = {0};
    if (draw_model(b, seed) && write_model(b, from, choice)) {
        ort_pass_options options = {.table = table, .level = 3, .portable = draw(b, 2),
                                    .contrib = true, .registry = b->n.env->registry,
                                    .report = add_up, .report_arg = &changes};
        ort_session *before = plain(&b->n);
        bool ok = before && ort_passes_run(b->n.model, &options, &err) == ORT_OK;
        ort_session *after = ok && changes ? plain(&b->n) : NULL;
        if (changes || (before && !ok))
            result = after && agree(before, after, b) ? SAME : OTHER;
        if (result == OTHER)
            printf("# %s, opset %d, %s: %s\n", ort_dtype_name(b->dtype),
                   (int)ort_model_opset(b->n.model, ""), options.portable ? "file" : "session",
                   *err.message ? err.message : "other numbers");
        ort_session_free(before);
        ort_session_free(after);
    }
    drop(b);
    return result;
}

/* The next alternatives, the last ones first; false: these were all. */
static bool advance(build *b)
{
    while (b->depth > 0 && b->digit[b->depth - 1] + 1 >= b->radix[b->depth - 1])
        b->digit[--b->depth] = 0;
    if (!b->depth)
        return false;
    b->digit[b->depth - 1]++;
    return true;
}

static void print_failure(const build *b, const ort_pass *pass, const ort_rewrite *row,
                          const int *digits, int depth, const char *what)
{
    printf("# %s: %s:", pass->name, row->from);
    for (int i = 0; i < depth; i++)
        printf(" %d", digits[i]);
    printf(": %s\n", what);
}

/* Every alternative of one choice of the row; how many failed. */
static int check_choice(build *b, const ort_pass *pass, const ort_rewrite *row,
                        const ort_text *from, const ort_choice *choice, int *built)
{
    int failed = 0;
    memset(b->digit, 0, sizeof b->digit);
    do {
        int taken = 0, others = 0, depth = 0, digits[DEPTH];
        for (uint64_t seed = 1; seed <= ATTEMPTS && taken < FITS; seed++) {
            outcome result = try_row(b, pass, from, choice, seed);
            taken += result != NOT_TAKEN;
            others += result == OTHER;
            depth = b->depth > depth ? b->depth : depth;
        }
        memcpy(digits, b->digit, sizeof digits);
        b->depth = depth;
        ++*built;
        failed += !taken || others;
        if (!taken)
            print_failure(b, pass, row, digits, depth, "no random input reaches it");
        if (others)
            print_failure(b, pass, row, digits, depth, "what is written computes something else");
    } while (advance(b));
    return failed;
}

/* A row in each of its alternatives; how many failed. */
static int check_row(const ort_pass *pass, const ort_rewrite *row, int *built)
{
    build b = {.example = row->example};
    ort_text from;
    char text[1000];
    int failed = 0;
    const char *statements = b.example ? strchr(b.example, ';') : NULL;
    snprintf(text, sizeof text, "%s%s%s", statements ? statements + 1 : "",
             statements ? "; " : "", row->from);
    if (!ort_text_parse(&from, text, pass->forms))
        failed++;
    for (size_t k = 0; !failed && k < from.choices.count; k++)
        failed += check_choice(&b, pass, row, &from, &from.choices.data[k], built);
    ort_text_release(&from);
    return failed;
}

static void rows(test_state *test)
{
    int row_count = 0, built = 0, failed = 0;
    const ort_pass *pass;
    for (int i = 0; (pass = ort_pass_at(i)); i++)
        for (const ort_rewrite *row = pass->rewrites; row && row->from; row++, row_count++)
            failed += check_row(pass, row, &built);
    printf("# %d rows, %d alternatives of them\n", row_count, built);
    CHECK(failed == 0);
}

static const char *always(const ort_pass_context *c, ort_match *m)
{
    return "it never is";
}

/* What computes something else, in one alternative alone, and what nothing reaches, are found. */
static void bad_rows(test_state *test)
{
    static const char *const forms[] = {"twice(x): x + x | x * 2 | x * 3", NULL};
    static const ort_rewrite wrong[] = {{"(Neg @twice(x))", "x * -2"}, {0}};
    static const ort_rewrite unreached[] = {{"(Neg (Neg x))", "x", .unless = always}, {0}};
    static const ort_pass passes[] = {
        {.name = "wrong", .doc = "", .rewrites = wrong, .forms = forms},
        {.name = "unreached", .doc = "", .rewrites = unreached},
    };
    int built = 0;
    printf("# bad ones, to be found:\n");
    CHECK(check_row(&passes[0], wrong, &built) == 1 && built == 3);
    CHECK(check_row(&passes[1], unreached, &built) == 1 && built == 4);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, rows);
    RUN(&test, bad_rows);
    return test.failures != 0;
}
