/* opencl.h - the provider that runs float operators through OpenCL 1.2.
 *
 * A device belongs to one session: programs, weights, and a context that those of an environment
 * share, so that values of callers serve all of them (opencl_memory.c). A plan is a list of
 * launches made for given shapes: kernel, arguments, sizes of the grid; buffers are numbered, and
 * share memory where their lives allow it. A frame has that memory, a queue, and a kernel object
 * per launch whose arguments are set once: a run only enqueues.
 *
 * An operator is a row (opencl_rows.c): may it be claimed, and which launches it becomes. Kernels
 * are texts in cl/, one program each, built when the first plan needs it and kept under ORT_CACHE.
 * Those of elementwise operators are written for each plan (opencl_chain.c).
 *
 * With fp16 a float value has two forms: floats, and halves, which rows that say so (.half) read
 * and write. Whoever reads the form that nobody has written yet has it made by one more launch; the
 * host sees floats alone.
 */
#ifndef ORT_PROVIDER_OPENCL_OPENCL_H
#define ORT_PROVIDER_OPENCL_OPENCL_H

#include <pthread.h>

#include "base/vec.h"
#include "provider/opencl/cl_api.h"
#include "provider/provider.h"

#define ORT_CL_PROGRAMS 16
#define ORT_CL_ARGS 64
#define ORT_CL_SHAPE 160 /* bytes of a text that names a shape */

/* An operand as kernels of products read it fastest: [batch][outer / strip][k][strip], zeros behind
 * the last of `outer`. Strip 0: as it is. */
typedef struct ort_cl_strips {
    int64_t start, batch_step, outer_step, k_step; /* where elements lie in the tensor */
    int64_t batch, outer, k, strip;
    int64_t half; /* of 16 bits; for who keeps it */
    int64_t others[2]; /* addresses of tensors that lie behind it in this form; for who keeps it */
} ort_cl_strips;

typedef struct ort_cl_constant { /* a weight on the device */
    const ort_tensor *tensor;
    ort_cl_strips strips;
    cl_mem memory;
} ort_cl_constant;

typedef struct ort_cl_row ort_cl_row;

typedef struct ort_cl_text {
    const char *name, *source;
} ort_cl_text;

typedef struct ort_cl_program { /* that a plan wrote */
    ort_cl_text text;
    cl_program built;
} ort_cl_program;

/* How products make tiles: in registers, one item a group, or in local memory by many items, which
 * share one of `tile` x `tile` sums. Each is a form of the programs "gemm" and "conv". */
typedef enum ort_cl_tiles {
    ORT_CL_REGISTERS,
    ORT_CL_LOCAL,
    ORT_CL_LOCAL16,
    ORT_CL_LOCAL64,
    ORT_CL_TILES
} ort_cl_tiles;

typedef struct ort_cl_tile {
    const char *name;
    int lanes;      /* of a register, where an item is a thread of a CPU; 0: many small items */
    int rows;       /* of a tile in registers; 0 */
    int tile, side; /* of a tile and of a group in local memory; 0 */
    char options[2][160]; /* of the compiler: for programs of floats, of halves */
    cl_program programs[2][ORT_CL_PROGRAMS];
} ort_cl_tile;

/* What a product or a convolution is run with. */
typedef struct ort_cl_choice {
    int tiles;
    int rows; /* that an item makes, whole tiles in registers; 0: the usual number */
} ort_cl_choice;

/* That an item makes: MOST_ROWS of common.cl. Whole tiles of 4, 6 and 8 rows, and no less than the
 * 128 rows that many layers have. */
#define ORT_CL_MOST_ROWS 144

typedef struct ort_cl_tuned { /* a shape, and what was fastest for it */
    char shape[ORT_CL_SHAPE];
    ort_cl_choice choice;
    double ns, usual_ns; /* of it, and of what runs without tuning */
    double macs;
} ort_cl_tuned;

typedef struct ort_cl_measured { /* the least time of one choice for a shape */
    char shape[ORT_CL_SHAPE];
    ort_cl_choice choice;
    bool usual;
    double ns, macs;
} ort_cl_measured;

typedef struct ort_cl_rates { /* what costs are estimated from */
    const char *class;    /* of device */
    double products;      /* multiply-adds in a second */
    double other;         /* operations of another kind */
    double bytes, launch; /* of memory in a second; seconds of a kernel that does nothing */
    double copy_bytes, copy;
    double share; /* of the device that the session's threads have */
    double doubt; /* guesses are multiplied by this */
} ort_cl_rates;

typedef struct ort_cl_device {
    ort_cl_api api;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue; /* of weights, and values of callers; frames have their own */
    int index;              /* of all devices */
    pthread_mutex_t lock;   /* of what follows */
    ORT_VEC(ort_cl_program *) generated;
    ORT_VEC(ort_cl_constant) constants;
    ORT_VEC(ort_cl_measured) measured;
    double half_signal, half_noise; /* of weights as halves, and of what rounding took */
    int64_t half_beyond;            /* of them, beyond the largest half */
    const ort_log *log;
    const ort_cl_row *(*row_of)(const ort_op *op); /* what becomes of an operator, or NULL */
    cl_device_type type;
    size_t alignment, most_bytes, most_group; /* of sub-buffers; of one buffer; of a work group */
    unsigned units, clock_mhz;
    ort_cl_tile tiles[ORT_CL_TILES];
    int own;   /* that of its class: all kernels but tuned products are of it */
    int lanes; /* of that */
    int span;  /* elements that an item walks over */
    int chain; /* the longest of elementwise operators */
    ort_cl_rates rates;
    int half;  /* what HALF is in programs of halves (cl/common.cl); 0: there are none */
    bool measuring; /* every choice is run, and the times are kept */
    bool written;   /* what was measured, with these rates */
    ORT_VEC(ort_cl_tuned) tuned; /* from then on, or as read: unchanged while it doesn't measure */
    char tuning_file[1000];      /* "": none */
    char name[200], driver[100];
} ort_cl_device;

/* opencl_device.c */
ort_status ort_cl_devices(ort_device_fn *tell, void *arg, ort_error *err);
ort_status ort_cl_open(const ort_provider_setup *setup, void **device, ort_error *err);
bool ort_cl_shares(void *device, const ort_provider_setup *setup);
void ort_cl_close(void *device);
/* opencl_cost.c. threads: of the session. */
void ort_cl_guess_rates(ort_cl_device *device, int threads);
double ort_cl_cost(void *device, const ort_node_work *work);
double ort_cl_copy_cost(void *device, double bytes);

/* opencl_tuning.c: what was measured of a device, in a file under ORT_CACHE. Reading: a file that
 * isn't there is none; one that is torn, or was measured with another device, driver or kernels, is
 * left alone with a warning. */
void ort_cl_tuning_read(ort_cl_device *device, bool tell);
bool ort_cl_tuning_path(ort_cl_device *device);
ort_status ort_cl_tuning_write(ort_cl_device *device, ort_error *err);
/* opencl_trials.c: how fast launches, copies and memory are. */
ort_status ort_cl_measure_rates(ort_cl_device *device, ort_error *err);

/* opencl_program.c: the texts, ended by one without a name; a kernel object of one. "common" stands
 * before each of the others. */
extern const ort_cl_text ort_cl_texts[];
ort_status ort_cl_kernel(ort_cl_device *device, int tiles, const char *program,
                         bool half, const char *kernel, cl_kernel *object, ort_error *err);
/* All bytes of a file, with their number; NULL: none are there to read. */
unsigned char *ort_cl_read_file(const char *path, size_t *count);
/* Of all texts. */
uint64_t ort_cl_texts_digest(void);
/* A text that a plan wrote, on the functions of cl/each.cl: the device's own copy, the same for
 * equal texts; and a kernel of one. */
ort_status ort_cl_generated(ort_cl_device *device, const char *source, ort_cl_program **program,
                            ort_error *err);
ort_status ort_cl_generated_kernel(ort_cl_device *device, ort_cl_program *program,
                                   const char *kernel, cl_kernel *object, ort_error *err);
void ort_cl_programs_release(ort_cl_device *device);

/* ---- plans */

typedef struct ort_cl_buffer {
    size_t bytes, offset; /* in the frame's memory, or in that of `whole` */
    int whole;            /* the buffer that this is a part of; -1: none */
    bool divided;         /* others are parts of it */
    int first, last;      /* launches between which it lives */
    int first_part, last_part; /* parts that use it */
    cl_mem memory;        /* of a constant, or NULL */
    bool owned;           /* made for this plan alone, not for the session */
} ort_cl_buffer;

typedef struct ort_cl_arg {
    char kind; /* 'b' buffer, 'i' int, 'f' float */
    int i;
    float f;
} ort_cl_arg;

typedef struct ort_cl_launch {
    const char *program, *kernel;
    bool half; /* of the program of halves */
    int tiles; /* the form of the program */
    ort_cl_arg args[ORT_CL_ARGS];
    int arg_count;
    int packed; /* those from here on are one argument, a struct; 0: none */
    size_t global[3], local[3]; /* local[0] 0: the driver's choice */
} ort_cl_launch;

typedef struct ort_cl_copy { /* of a value between host and device */
    int buffer;
    size_t bytes;
} ort_cl_copy;

typedef struct ort_cl_check { /* of indices, by the device: in [least, size) */
    const ort_node *node;
    int least, size; /* both 0: of several tables */
} ort_cl_check;

typedef struct ort_cl_trial { /* of a choice: its launches */
    ort_cl_measured what;
    int first, end;
    bool warm; /* it has run before: the first time isn't kept */
} ort_cl_trial;

typedef struct ort_cl_view { /* a value that is columns of rows, which nobody has copied yet */
    int whole;                    /* the buffer of the rows; -1: none */
    int64_t start, row_step, row; /* elements: of the first, from row to row, of a row */
    bool half;
} ort_cl_view;

typedef struct ort_cl_plan {
    ort_cl_device *device;
    ORT_VEC(ort_cl_buffer) buffers;
    ORT_VEC(ort_cl_launch) launches;
    ORT_VEC(int) ends; /* by part: one past its last launch */
    ORT_VEC(int) out_ends; /* by part: one past its last copy out */
    ORT_VEC(ort_cl_copy) in, out;
    ORT_VEC(ort_cl_trial) trials; /* while the device is measured */
    ORT_VEC(ort_cl_check) checks; /* kernels tell of the first that fails by its place, from 1 */
    int fault;                    /* the buffer where they do; -1: nothing is checked */
    int counters; /* a buffer that is 0 before a run; -1: there is none */
    size_t memory_bytes;
    struct ort_cl_chains *chains; /* opencl_chain.c; names of launches point into it */
    ort_cl_program *generated;    /* its kernels; NULL: none */
    /* while it is made: */
    const ort_device_request *request;
    struct ort_cl_ahead *ahead; /* by value id */
    int *buffer_of;    /* by value id; -1 */
    int *half_of;      /* of its halves; -1 */
    ort_cl_view *view_of;
    int half_steps;    /* that are computed on halves */
    ort_status status; /* the first error, which `error` tells */
    ort_error *error;
} ort_cl_plan;

typedef struct ort_cl_step { /* what a row sees of a node: types are settled */
    ort_cl_plan *plan;
    const ort_node *node;
    const ort_op *op;
    const ort_cl_row *row;
    const ort_device_step *next; /* an activation that its kernels apply to the result; or NULL */
    bool half; /* float values are read and written as halves */
    int tiles; /* of launches that are made now */
    const ort_device_step *sum; /* an addition behind these, that they make, too; or NULL */
} ort_cl_step;

/* opencl_trials.c. What `shape` is run with: one choice, or all that are measured. rows: of the
 * result, as far as items divide them. */
#define ORT_CL_CHOICES 24
typedef struct ort_cl_choices {
    const char *shape;
    double macs;
    ort_cl_choice list[ORT_CL_CHOICES]; /* the usual one twice, before all that are measured */
    int count;
} ort_cl_choices;

void ort_cl_choices_of(const ort_cl_step *s, const char *shape, int64_t rows, double macs,
                       ort_cl_choices *choices);
/* Around the launches of a choice: from ort_cl_choose on, which gives the number of the first, they
 * are of its tiles. */
int ort_cl_choose(ort_cl_step *s, const ort_cl_choice *choice);
void ort_cl_chosen(ort_cl_step *s, const ort_cl_choices *choices, int index, int first);

/* opencl_plan.c: what rows are made of. Shapes of inputs and outputs; NULL: absent. */
const ort_fact *ort_cl_in(const ort_cl_step *s, int input);
const ort_fact *ort_cl_out(const ort_cl_step *s, int output);
static inline int64_t ort_cl_dim(const ort_fact *fact, int axis)
{
    return fact->type.dim[axis].size;
}
int64_t ort_cl_count(const ort_fact *fact);
/* The kernel that moves elements of a type; NULL: none does. */
const char *ort_cl_mover(ort_dtype type);
/* Bytes of an element of a value, in the form of halves where it is one of floats. */
size_t ort_cl_size(const ort_cl_plan *p, ort_id id, bool half);
size_t ort_cl_bytes(const ort_fact *fact);
/* The buffer of an input, of an output, or of scratch for this step alone. After an error they are
 * 0, and launches are dropped. */
int ort_cl_read(ort_cl_step *s, int input);
/* An input in strips: a constant is packed once, anything else in each run. */
int ort_cl_read_strips(ort_cl_step *s, int input, const ort_cl_strips *strips);
bool ort_cl_constant_input(const ort_cl_step *s, int input);
/* Buffers of these numbers, as int and as float. */
int ort_cl_table(ort_cl_step *s, const int64_t *numbers, int64_t count);
int ort_cl_numbers(ort_cl_step *s, const float *numbers, int64_t count);
/* An input, a constant, as `fill` writes it: once a session, where the constant is its. */
int ort_cl_read_form(ort_cl_step *s, int input, const ort_cl_strips *form, size_t bytes,
                     void (*fill)(const void *arg, void *to), const void *arg);
int ort_cl_write(ort_cl_step *s, int output);
/* Output 0 where a Concat that alone reads it joins it, be it at a place where no buffer can begin:
 * from element `start` of the buffer on. */
int ort_cl_write_at(ort_cl_step *s, int64_t *start);
int ort_cl_scratch(ort_cl_step *s, int64_t floats); /* halves where the step is computed so */
/* A check of indices: its number, and the buffer where a kernel tells that it failed. */
int ort_cl_checks(ort_cl_step *s, int64_t least, int64_t size, int *fault);
/* Numbers (int) that are 0 when a launch begins, if every launch leaves them so. */
int ort_cl_counters(ort_cl_step *s, int64_t count);
/* An error where the value of an input, which is there, isn't known when the plan is made. */
ort_status ort_cl_known(const ort_cl_step *s, int input, ort_error *err);
/* The same for constants of several nodes, all of one shape, one behind the other. */
int ort_cl_read_weights(ort_cl_step *s, const ort_node *const *nodes, int count, int input,
                        const ort_cl_strips *strips);
/* One buffer of which the first output of each of these nodes, all of one size, is a part; -1: the
 * device doesn't let parts begin at any of its rows, so that all shapes of a run are alike. */
int ort_cl_write_parts(ort_cl_step *s, const ort_node *const *nodes, int count);
/* Output 0 is input 0 in another shape. */
void ort_cl_alias(ort_cl_step *s);
/* Can an output be a part of an input's memory, from this element on? Then it is. */
bool ort_cl_is_part(ort_cl_step *s, int output, int input, int64_t at);

/* An output is columns of the rows that input 0 is made of, from element `start` on: copied when
 * somebody reads it who can't read it so. */
void ort_cl_columns(ort_cl_step *s, int output, int64_t start, int64_t row_step, int64_t row);
/* An input by rows of its last axis: where the first is, how far they are apart. */
int ort_cl_read_rows(ort_cl_step *s, int input, int64_t *start, int64_t *row_step);

/* opencl_ahead.c: what the steps behind a step mean for it, known before the first is made. */
typedef struct ort_cl_ahead { /* of a value */
    int uses;                      /* how often steps and copies read it */
    const ort_device_step *reader; /* the last of these, if it is a step */
    ort_id joined; /* it lies in that result of a Concat, from element `at` on; ORT_ID_NONE */
    int64_t at;
    bool copied; /* between host and device */
    bool placed; /* its elements are in that result, and nowhere else */
    bool made;   /* by the step before its own */
    bool past;   /* its step is made, or its copy to the device */
} ort_cl_ahead;

ort_status ort_cl_look_ahead(ort_cl_plan *p, ort_error *err);
/* The activation behind a step that its kernels can apply; NULL: none. */
const ort_device_step *ort_cl_next(const ort_cl_plan *p, const ort_cl_step *s);
/* Products of the step's left operand with weights of its weight's shape, the step's own first,
 * which one launch may make: how many; below 2: none. */
#define ORT_CL_SIBLINGS 3
int ort_cl_siblings(const ort_cl_step *s, const ort_node **list);
/* One launch over a grid of x * y * z work items. format: a letter for each argument, 'b' a buffer
 * (int), 'o' one that the kernel lacks where it is below 0, 'i' a number (int64_t), 'f' a double,
 * 'v' a list of six (const int64_t *). '|': what is behind it is one argument, a struct. */
void ort_cl_launch_grid(ort_cl_step *s, const char *program, const char *kernel,
                        const int64_t *grid, const size_t *local, const char *format, ...);
/* How many items share a row of `count` elements, and how many walk over so many. */
int64_t ort_cl_along(const ort_cl_step *s, int64_t count);
int64_t ort_cl_items(const ort_cl_step *s, int64_t count);

/* Is a value on the device, if the step asks for it now? */
bool ort_cl_is_there(const ort_cl_step *s, ort_id id);
/* The node whose output 0 the step's kernels write; the step that alone reads that, if it is of the
 * same part and nobody else sees it, or NULL. */
static inline const ort_node *ort_cl_last_node(const ort_cl_step *s)
{
    return s->sum ? s->sum->node : s->next ? s->next->node : s->node;
}
const ort_device_step *ort_cl_only_reader(const ort_cl_step *s);
/* The steps of the part that is being made, behind this one, as far as `end`. */
const ort_device_step *ort_cl_steps_behind(const ort_cl_step *s, const ort_device_step **end);
/* Another step, of the same plan, and with its own activation. */
ort_cl_step ort_cl_step_of(const ort_cl_step *s, const ort_device_step *step);
/* All that the step stands for is made. */
void ort_cl_set_made(const ort_cl_step *s);
void ort_cl_set_past(ort_cl_plan *p, const ort_node *node);

/* The same for who writes launches himself: values by id and form, arguments one by one. */
int ort_cl_read_value(ort_cl_plan *p, ort_id id, bool half);
int ort_cl_write_value(ort_cl_plan *p, ort_id id, bool half);
/* Has the plan halves of the value, if it is read so? Constants of chains stay floats. */
bool ort_cl_halves(const ort_cl_plan *p, ort_id id);
void ort_cl_add_arg(ort_cl_plan *p, ort_cl_launch *l, ort_cl_arg arg);
void ort_cl_add_launch(ort_cl_plan *p, ort_cl_launch *l, const int64_t *grid, const size_t *local);

/* opencl_chain.c. A step of an elementwise operator is taken, to be launched later; a step that
 * needs what waits has it launched before. */
ort_status ort_cl_chains_new(ort_cl_plan *p, ort_error *err);
ort_status ort_cl_chain_step(ort_cl_plan *p, const ort_device_step *step, bool *taken,
                             ort_error *err);
ort_status ort_cl_chain_end(ort_cl_plan *p, ort_error *err);
ort_status ort_cl_chains_finish(ort_cl_plan *p, ort_error *err);
void ort_cl_chains_free(ort_cl_plan *p);
/* Element types of chains: float, int32, int64, bool are 0 to 3; others -1. */
int ort_cl_element(ort_dtype dtype);

typedef enum ort_cl_form { /* of an operator: what chains make of it (cl/each.cl) */
    ORT_CL_WHOLE,          /* no part of a chain */
    ORT_CL_ONE,            /* a function of an element and two numbers */
    ORT_CL_FOLD,           /* of two elements; of more one after the other */
    ORT_CL_PICK,           /* of a condition and two elements */
    ORT_CL_CAST,
} ort_cl_form;

struct ort_cl_row {
    const char *domain, *op_type;
    /* May be NULL. What is asked of every row is asked before: float tensors of rank 6 at most. */
    bool (*claim)(const ort_graph *graph, const ort_node *node, const char **why);
    ort_status (*emit)(ort_cl_step *s, ort_error *err); /* NULL: of a form */
    const char *kernel; /* of rows that share an emit; the function of a form */
    bool typed;         /* its claim looks at element types, which may be others than float */
    ort_cl_form form;
    /* ORT_CL_ONE: the numbers, and the function if that depends on the node. May be NULL. */
    const char *(*numbers)(const ort_cl_step *s, double *two);
    bool half; /* all kernels of `emit` are made for halves, too */
    bool activates; /* its kernels apply an activation to what they write */
};

/* opencl_steps.c */
ort_status ort_cl_plan_new(void *device, const ort_device_request *request, void **plan,
                           ort_error *err);
void ort_cl_plan_free(void *plan);
/* opencl_trials.c: after a run of a plan whose launches took these times (ns; below 0: not seen).
 * Keeps the least, and writes the file. */
ort_status ort_cl_trials_note(ort_cl_plan *plan, const double *times, ort_error *err);
/* opencl_frame.c */
ort_status ort_cl_frame_new(void *plan, void **frame, size_t *bytes, ort_error *err);
void ort_cl_frame_free(void *frame);
ort_status ort_cl_copy_in(void *frame, int index, const void *data, ort_error *err);
ort_status ort_cl_run(void *frame, int part, ort_error *err);
ort_status ort_cl_copy_out(void *frame, int index, void *data, ort_error *err);
ort_status ort_cl_sync(void *frame, ort_error *err);
ort_status ort_cl_watch(void *frame, bool on, ort_error *err);
ort_status ort_cl_times(void *frame, ort_device_time_fn *tell, void *arg, ort_error *err);

ort_status ort_cl_use_in(void *frame, int index, void *memory, ort_error *err);
ort_status ort_cl_use_out(void *frame, int index, void *memory, ort_error *err);
ort_status ort_cl_place_out(void *frame, int index, void *data, ort_error *err);

/* opencl_memory.c: values of callers */
typedef struct ort_cl_memory {
    ort_cl_device *device;
    cl_mem object;
    uint64_t serial; /* from 1 on; no other of this process has it, nor had */
} ort_cl_memory;

/* A number for memory that frames are lent. */
uint64_t ort_cl_memory_serial(void);
ort_status ort_cl_memory_new(void *device, size_t bytes, void **memory, ort_error *err);
void ort_cl_memory_free(void *memory);
ort_status ort_cl_memory_part(void *memory, size_t offset, size_t bytes, void **part,
                              ort_error *err);
size_t ort_cl_memory_alignment(void *device);
ort_status ort_cl_memory_write(void *memory, const void *data, size_t bytes, ort_error *err);
ort_status ort_cl_memory_read(void *memory, void *data, size_t bytes, ort_error *err);

/* opencl_weight.c: constants on the device, as they are or in strips. `shared`: the same
 * for all plans of the session, which keeps it; else the caller's. */
ort_status ort_cl_weight(ort_cl_device *device, const ort_tensor *tensor, const ort_fact *fact,
                         const ort_cl_strips *strips, bool shared, cl_mem *memory,
                         ort_error *err);
/* Several of one shape, one behind the other, for all plans of the session. */
ort_status ort_cl_weights(ort_cl_device *device, const ort_tensor *const *tensors, int count,
                          const ort_fact *fact, const ort_cl_strips *strips, cl_mem *memory,
                          ort_error *err);
/* A form that a row packs by itself, and names by numbers that no other form has: NULL, or the
 * session's. What is kept is its from then on; another thread may have been faster. */
cl_mem ort_cl_kept(ort_cl_device *device, const ort_tensor *tensor, const ort_cl_strips *form);
ort_status ort_cl_keep(ort_cl_device *device, const ort_tensor *tensor, const ort_cl_strips *form,
                       cl_mem *memory, ort_error *err);
ort_status ort_cl_upload(ort_cl_device *device, const void *data, size_t bytes, cl_mem *memory,
                         ort_error *err);

/* Rows of each file opencl_NAME.c, ended by one without a name. */
extern const ort_cl_row ort_cl_net_rows[], ort_cl_math_rows[], ort_cl_moves_rows[],
    ort_cl_pool_rows[], ort_cl_norm_rows[], ort_cl_attention_rows[], ort_cl_attention_fused_rows[],
    ort_cl_attention_group_rows[],
    ort_cl_take_rows[], ort_cl_reduce_rows[],
    ort_cl_transpose_rows[], ort_cl_tokens_rows[], ort_cl_codes_rows[], ort_cl_bytes_rows[],
    ort_cl_rnn_rows[];
/* opencl_rows.c: all of them, ended by NULL. Are these rows fit for use: of operators that exist,
 * none twice, each made in one way? ORT_ERROR_USAGE says what isn't. */
extern const ort_cl_row *const ort_cl_row_tables[];
ort_status ort_cl_rows_check(const ort_cl_row *const *tables, const ort_registry *registry,
                             ort_error *err);

#endif
