/* nnapi_double.h: what the files of the double of NNAPI share. The double is a library with the calls
 * of Android's libneuralnetworks.so that looks at each call by the rules of NNAPI, and computes with
 * plain loops. It knows NNAPI's numbers on its own account: nothing of nori's is included.
 *
 * A broken rule is a fault: a line in the file NNAPI_DOUBLE_LOG names, counted by
 * nnapi_double_faults(), and BAD_DATA or BAD_STATE from the call. NNAPI_DOUBLE_LEVEL sets the feature
 * level (30), NNAPI_DOUBLE_REFUSE names a call that fails without being a fault. */
#ifndef NORI_TESTS_NNAPI_DOUBLE_H
#define NORI_TESTS_NNAPI_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_RANK = 8, NONE = -1 };
enum { OK = 0, OUT_OF_MEMORY = 1, UNEXPECTED_NULL = 3, BAD_DATA = 4, OP_FAILED = 5, BAD_STATE = 6 };
enum { FLOAT32 = 0, INT32 = 1, TENSOR_FLOAT32 = 3, TENSOR_INT32 = 4, BOOL = 6 };
enum { TENSOR_UINT8 = 5, TENSOR_CHANNELS = 11, TENSOR_INT8 = 14 }; /* bytes: (q - zero) * scale */

typedef struct operand_type {
    int32_t type;
    uint32_t rank;
    const uint32_t *dims;
    float scale;
    int32_t zero_point;
} operand_type;

/* Scales of a TENSOR_CHANNELS, one for each index of a dimension. */
typedef struct channel_type {
    uint32_t dim, count;
    const float *scales;
} channel_type;

typedef struct operand {
    int32_t type;
    uint32_t rank, dims[MAX_RANK];
    float scale;
    int32_t zero;
    channel_type channels; /* scales: a copy, or NULL */
    size_t count, bytes;
    const void *value; /* of a constant; else NULL */
    bool kept;         /* copied into here */
    uint64_t sum;      /* of a value that is the caller's memory */
    int writer;        /* operation, or NONE */
    bool in, out;
} operand;

typedef struct operation operation;
typedef struct rule rule;
struct operation {
    const rule *rule;
    uint32_t n_in, *in, out;
};

typedef struct model {
    operand *operands;
    operation *operations;
    uint32_t n_operands, n_operations, n_in, n_out, *in, *out;
    uint32_t *order; /* of operations, so that all is written before it is read */
    bool identified, finished;
    int users; /* compilations */
} model;

/* One operation while it runs: data of all operands by number. */
typedef struct job {
    const model *m;
    const operation *o;
    void **data;
    float **counts; /* by input: bytes less their zero point; NULL: not of bytes */
} job;

/* What the bytes that come out stand for. */
typedef enum meaning {
    MEANS_ANY,
    MEANS_SAME,    /* as those that go in; the operation then counts in steps of their scale */
    MEANS_PRODUCT, /* before level 29 the scale is above that of input times filter */
    MEANS_MUL,     /* the scale is above that of the first times that of the second */
    MEANS_UNIT,    /* steps of 1/256 from 0 on */
    MEANS_TANH,    /* steps of 1/128 around 0 */
    MEANS_CONCAT   /* SAME before level 29, unless signed */
} meaning;

struct rule {
    int32_t code;
    const char *name;
    /* Inputs: T tensor of floats, or of bytes where the rule has them: all T of one type; F T or, of
     * bytes, int8 with scales a channel; B a bias, Q tensor of bytes, I of int32; i, f, b scalars; T+
     * any number of T. A '|' ends a form with fewer inputs, the digit behind it (9 = 29, 0 = 30) is
     * the level that brought the next. */
    int level;
    const char *inputs;
    int bytes; /* the level that has it on bytes (signed: 30 at least); 0: never */
    meaning meaning;
    /* What comes out; NULL, or the rule that is broken. */
    const char *(*shape)(const model *m, const operation *o, operand *out);
    void (*run)(const job *j);
};

int nnapi_double_fault(int result, const char *format, ...);
bool nnapi_double_refused(const char *call); /* whether NNAPI_DOUBLE_REFUSE names it */
void nnapi_double_lives(int by);             /* models, compilations, executions that are there */
void nnapi_double_note(const char *name); /* of the model that is made; NULL: a new one */
/* Whether values given by reference are as they were. */
int nnapi_double_values(const model *m);

/* ---- for calls ---- */
#define NEED(condition, result, ...)                      \
    do {                                                  \
        if (!(condition)) {                               \
            return nnapi_double_fault(result, __VA_ARGS__); \
        }                                                 \
    } while (0)
#define MAY_REFUSE(call)      \
    do {                      \
        if (nnapi_double_refused(call)) {  \
            return OP_FAILED; \
        }                     \
    } while (0)

int64_t nnapi_double_level(void);
/* Looks at the inputs of an operation by its rule, sets out to what must come out; NULL: fits. */
const rule *nnapi_double_rule(int32_t code);
const char *nnapi_double_inputs(const model *m, const operation *o);

/* ---- for rules ---- */
const operand *arg(const model *m, const operation *o, uint32_t i);
int32_t arg_int(const model *m, const operation *o, uint32_t i); /* also of BOOL */
const int32_t *arg_ints(const model *m, const operation *o, uint32_t i);
extern const rule nnapi_double_windows[], nnapi_double_moves[], nnapi_double_others[]; /* end with NULL */
const char *like_first(const model *m, const operation *o, operand *out);
/* Input i: floats, or bytes less their zero point, which unit() times that stand for. */
const float *in_data(const job *j, uint32_t i);
double unit(const job *j, uint32_t i);
double fused(const job *j, int32_t code, double v);
const operand *out_of(const job *j);
/* Element k of the output, rounded to the nearest byte where it is of bytes. */
void put(const job *j, size_t k, double v);

/* Positions in two inputs for each element of an output, or in an output for each of an input. */
typedef struct walk {
    uint32_t rank, at[MAX_RANK];
    size_t a[MAX_RANK], b[MAX_RANK];
} walk;
void walk_on(walk *w, const operand *y, size_t *a, size_t *b);

/* ---- nnapi_double_bytes.c ---- */
bool is_bytes(const operand *o);
/* NULL, or the rule of bytes that is broken. */
const char *nnapi_double_quantized(const operand *o);           /* an operand's own */
const char *nnapi_double_bias(const model *m, const operation *o); /* of a convolution or product */
const char *nnapi_double_meaning(const model *m, const operation *o);
/* The bytes of all inputs as counts; false: no memory. */
bool nnapi_double_unpack(job *j);
void nnapi_double_release(job *j);
/* One product of input and filter, for an output channel. */
double product_unit(const job *j, size_t channel);
double bias_at(const job *j, size_t channel);

#endif
