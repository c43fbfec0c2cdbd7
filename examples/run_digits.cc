/* run_digits.cc - run_digits.c in C++17: the library's objects in smart pointers, its errors thrown.
 *
 *     c++ -std=c++17 run_digits.cc $(pkg-config --cflags --libs --static ort) -o run_digits
 *     ./run_digits models/digits.onnx models/images/digit_7_008.png
 */
#include <ort.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace {

template <auto release> struct freer {
    template <typename T> void operator()(T *object) const { release(object); }
};
using environment = std::unique_ptr<ort_env, freer<ort_env_free>>;
using session = std::unique_ptr<ort_session, freer<ort_session_free>>;
using tensors = std::unique_ptr<ort_tensors, freer<ort_tensors_free>>;
using value = std::unique_ptr<ort_value, freer<ort_value_free>>;

struct failure : std::runtime_error {
    explicit failure(const ort_error &err) : std::runtime_error(err.message), status(err.status) {}
    ort_status status;
};

/* make<session>(ort_session_load, env.get(), path, nullptr): the new object, owned. */
template <typename Owner, typename Call, typename... Arguments>
Owner make(Call call, Arguments... arguments)
{
    ort_error err = ORT_ERROR_INIT;
    typename Owner::pointer object = nullptr;
    if (call(arguments..., &object, &err))
        throw failure(err);
    return Owner(object);
}

value run(const session &s, const value &x)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *in = x.get(), *out = nullptr;
    if (ort_session_run(s.get(), nullptr, &in, 1, nullptr, &out, 1, nullptr, &err))
        throw failure(err);
    return value(out);
}

void read_digit(const char *model, const char *picture)
{
    const int64_t dims[] = {1, 1, 8, 8};
    auto env = make<environment>(ort_env_new, nullptr);
    auto net = make<session>(ort_session_load, env.get(), model, nullptr);
    auto image = make<tensors>(ort_tensors_load, picture, nullptr);
    auto x = make<value>(ort_value_new_tensor, ORT_DTYPE_FLOAT, 4, dims);
    const ort_value *pixels = ort_tensors_value(image.get(), 0); /* height x width x channels */
    const int64_t step = ort_value_count(pixels) / 64;
    for (int64_t i = 0; i < 64; i++)
        ort_value_set_double(x.get(), i, ort_value_get_double(pixels, i * step) / 255);
    auto y = run(net, x);
    int best = 0;
    for (int digit = 1; digit < 10; digit++)
        if (ort_value_get_double(y.get(), digit) > ort_value_get_double(y.get(), best))
            best = digit;
    std::printf("%d (%.1f %%)\n", best, 100 * ort_value_get_double(y.get(), best));
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: run_digits MODEL IMAGE\n");
        return 2;
    }
    try {
        read_digit(argv[1], argv[2]);
    } catch (const failure &f) {
        std::fprintf(stderr, "run_digits: %s\n", f.what());
        return ort_status_exit(f.status);
    }
    return 0;
}
