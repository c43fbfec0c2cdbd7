/* run_digits.c - reads a digit from an image of 8x8 pixels with a model and prints what it saw.
 *
 *     cc run_digits.c $(pkg-config --cflags --libs --static ort) -o run_digits
 *     ./run_digits models/digits.onnx models/images/digit_7_008.png
 */
#include <ort.h>

int main(int argc, char **argv)
{
    static const int64_t dims[] = {1, 1, 8, 8};
    ort_error err = ORT_ERROR_INIT;
    ort_env *env = NULL;
    ort_session *session = NULL;
    ort_tensors *image = NULL;
    ort_value *x = NULL, *y = NULL;
    int best = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: run_digits MODEL IMAGE\n");
        return 2;
    }
    if (ort_env_new(NULL, &env, &err) || ort_session_load(env, argv[1], NULL, &session, &err) ||
        ort_tensors_load(argv[2], NULL, &image, &err) ||
        ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, dims, &x, &err))
        goto done;
    ort_value *pixels = ort_tensors_value(image, 0); /* height x width x channels, uint8 */
    int64_t step = ort_value_count(pixels) / 64;
    for (int64_t i = 0; step > 0 && i < 64; i++)
        ((float *)ort_value_data(x))[i] = (float)ort_value_get_double(pixels, i * step) / 255;
    if (ort_session_run(session, NULL, &x, 1, NULL, &y, 1, NULL, &err))
        goto done;
    for (int digit = 1; digit < 10; digit++)
        best = ort_value_get_double(y, digit) > ort_value_get_double(y, best) ? digit : best;
    printf("%d (%.1f %%)\n", best, 100 * ort_value_get_double(y, best));
done:
    if (err.status != ORT_OK)
        fprintf(stderr, "run_digits: %s\n", err.message);
    ort_value_free(y), ort_value_free(x), ort_tensors_free(image);
    ort_session_free(session), ort_env_free(env);
    return ort_status_exit(err.status);
}
