/* compare.c - are the outputs of a peer those of this library, and if not, whose are off?
 *
 * Peers that read the ONNX file are held to tolerances. Those that run a form of their own (another
 * layout, integers that round elsewhere) are held to a correlation; outputs that they can't give
 * are counted in the notes.
 */
#include "../harness.h"
#include "bench.h"

static const double least_correlation = 0.999;
/* Of models of integers with weights that mean nothing, where one rounding that falls the other
 * way spreads through all layers: bert_base_static_qdq, whose codes nobody computes wrongly, is
 * 23.6 dB from itself between two of onnxruntime's levels, 26.7 between two of ours. */
static const double least_loose_sqnr_db = 20;

static ort_value *find_array(const ort_tensors *archive, const char *name)
{
    for (size_t k = 0; k < ort_tensors_count(archive); k++)
        if (!strcmp(ort_tensors_name(archive, k), name))
            return ort_tensors_value(archive, k);
    return NULL;
}

/* Whether the noise in `a` is small beside `b`. */
static bool same_signal(const ort_value *a, const ort_value *b, char *text, size_t size)
{
    ort_distance distance = ORT_DISTANCE_INIT;
    ort_error err = {0};
    if (ort_distance_add(&distance, b, a, &err)) {
        snprintf(text, size, "%.220s", err.message);
        return false;
    }
    double sqnr = ort_distance_sqnr_db(&distance);
    snprintf(text, size, "SQNR %.1f dB, at least %.0f", sqnr, least_loose_sqnr_db);
    return sqnr >= least_loose_sqnr_db; /* NaN isn't */
}

/* Compare the archives that two runtimes wrote. False says why in `why`. `loose`: quantized with
 * weights that mean nothing. */
static bool same_outputs(const char *ours, const char *theirs, const harness_meta *meta,
                         bool loose, char *why, size_t size)
{
    ort_tensors *mine = NULL, *other = NULL;
    ort_error err = {0};
    /* Two runtimes may each be off by the tolerance. */
    ort_compare_options options = {.size = sizeof options,
                                   .rtol = 2 * meta->rtol,
                                   .atol = 2 * meta->atol};
    bool ok = !ort_tensors_load(ours, NULL, &mine, &err) &&
              !ort_tensors_load(theirs, NULL, &other, &err);
    if (!ok)
        snprintf(why, size, "%.250s", err.message);
    for (size_t k = 0; ok && k < ort_tensors_count(mine); k++) {
        const char *name = ort_tensors_name(mine, k);
        ort_value *a = ort_tensors_value(mine, k), *b = find_array(other, name);
        ort_difference diff = ORT_DIFFERENCE_INIT;
        if (b && loose)
            ok = same_signal(a, b, diff.text, sizeof diff.text);
        else
            ok = b && !ort_value_compare(a, b, &options, &diff, &err) && diff.equal;
        if (!ok)
            snprintf(why, size, "%s differs: %.220s", name, b ? diff.text : "missing");
    }
    ort_tensors_free(mine);
    ort_tensors_free(other);
    return ok;
}

/* Whether the file on disk of a runtime is near the expected values of the set. */
static bool as_expected(const char *folder, const char *path, const harness_meta *meta)
{
    char set[PATH_MAX];
    harness_values expected = {0};
    ort_tensors *mine = NULL;
    ort_error err = {0};
    ort_compare_options options = {.size = sizeof options, .rtol = meta->rtol, .atol = meta->atol};
    snprintf(set, sizeof set, "%s/test_data_set_0", folder);
    bool ok = access(set, F_OK) == 0 && !harness_load_values(set, "output", &expected, &err) &&
              expected.count > 0 && !ort_tensors_load(path, NULL, &mine, &err);
    for (size_t k = 0; ok && k < expected.count; k++) {
        char name[32];
        ort_difference diff = ORT_DIFFERENCE_INIT;
        snprintf(name, sizeof name, "output_%zu", k);
        ort_value *value = find_array(mine, name);
        if (value && expected.value[k])
            ok = !ort_value_compare(value, expected.value[k], &options, &diff, &err) && diff.equal;
    }
    ort_tensors_free(mine);
    harness_values_free(&expected);
    return ok;
}

/* Of two arrays of the same number of elements; of constants, whether they are near. */
static double correlation(const ort_value *a, const ort_value *b)
{
    double n = (double)ort_value_count(a), sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
    for (int64_t k = 0; k < ort_value_count(a); k++) {
        sa += ort_value_get_double(a, k) / n;
        sb += ort_value_get_double(b, k) / n;
    }
    for (int64_t k = 0; k < ort_value_count(a); k++) {
        double x = ort_value_get_double(a, k) - sa, y = ort_value_get_double(b, k) - sb;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return aa == 0 && bb == 0 ? fabs(sa - sb) <= 1e-3 * fabs(sb) : ab / sqrt(aa * bb);
}

/* Each array that the peer wrote beside ours of that name; at least one. */
static bool correlates(const char *ours, const char *theirs, side *s)
{
    size_t size = sizeof s->why;
    char *why = s->why;
    ort_tensors *mine = NULL, *other = NULL;
    ort_error err = {0};
    bool ok = !ort_tensors_load(ours, NULL, &mine, &err) &&
              !ort_tensors_load(theirs, NULL, &other, &err);
    snprintf(why, size, "%.250s", ok ? "it wrote no output" : err.message);
    bool right = ok && ort_tensors_count(other) > 0;
    for (size_t k = 0; right && k < ort_tensors_count(other); k++) {
        const char *name = ort_tensors_name(other, k);
        ort_value *a = find_array(mine, name), *b = ort_tensors_value(other, k);
        bool same = a && ort_value_count(a) == ort_value_count(b);
        double r = same ? correlation(a, b) : 0;
        right = r >= least_correlation; /* NaN isn't */
        snprintf(why, size, same ? "%s: correlation %.4f" : "%s has other sizes", name, r);
    }
    if (right && ort_tensors_count(other) < ort_tensors_count(mine))
        snprintf(s->note, sizeof s->note, "%zu of %zu outputs, which are all that it gives",
                 ort_tensors_count(other), ort_tensors_count(mine));
    if (right)
        why[0] = '\0';
    ort_tensors_free(mine);
    ort_tensors_free(other);
    return right;
}

void outputs_path(const settings *set, int which, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/outputs_%d.npz", set->scratch, which);
}

/* A peer whose outputs differ from ours is wrong when ours are near the expected values; without
 * expected values (filled topologies) onnxruntime decides. */
void compare_outputs(const settings *set, const char *folder, measure *m)
{
    char ours[PATH_MAX], theirs[PATH_MAX];
    harness_meta meta;
    bool given = harness_read_meta(folder, &meta), loose = false, ours_good, same;
    if (!given) {
        meta = (harness_meta){.rtol = 1e-2, .atol = 1e-3};
        loose = strstr(m->family, "integer") != NULL;
    }
    outputs_path(set, OURS, ours);
    ours_good = as_expected(folder, ours, &meta);
    for (int i = 1; i < SIDES && m->side[OURS].state == SIDE_FINE; i++) {
        side *s = &m->side[i];
        if (s->state != SIDE_FINE)
            continue;
        outputs_path(set, i, theirs);
        same = i >= LITERT ? correlates(ours, theirs, s)
                           : same_outputs(ours, theirs, &meta, loose, s->why, sizeof s->why);
        if (same)
            continue;
        if (i == ONNXRUNTIME && !ours_good) {
            m->differs = true;
            return;
        }
        s->state = SIDE_WRONG;
    }
}
