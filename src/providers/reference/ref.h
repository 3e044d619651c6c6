/* ref.h: what reference kernels share: errors, lists of element types, blocks of elements as
 * double or int64, and the iterator that turns broadcasting into one-dimensional loops.
 *
 * Element types come as X-lists. Each entry is X(TYPE, name, stored, value, wrap):
 *   TYPE    the nori_type            name   a suffix: f32, i8 ...
 *   stored  C type in memory         value  C type after loading (half types load to float)
 *   wrap    type to compute in: floats as they are, integers unsigned of at least 32 bits, so that
 *           overflow wraps instead of being undefined
 * nori__load_<name>(const stored *) and nori__store_<name>(stored *, value) go with them. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_H
#define NORI_PROVIDERS_REFERENCE_REF_H

#include "base/half.h"
#include "ops/op.h"

/* ---- element types ---- */

#define NORI__REF_HALVES(X)                                    \
    X(NORI_FLOAT16, f16, uint16_t, float, float)               \
    X(NORI_BFLOAT16, bf16, uint16_t, float, float)
#define NORI__REF_FLOATS(X)                                    \
    X(NORI_FLOAT, f32, float, float, float)                    \
    X(NORI_DOUBLE, f64, double, double, double)                \
    NORI__REF_HALVES(X)
#define NORI__REF_SIGNED(X)                                    \
    X(NORI_INT8, i8, int8_t, int8_t, uint32_t)                 \
    X(NORI_INT16, i16, int16_t, int16_t, uint32_t)             \
    X(NORI_INT32, i32, int32_t, int32_t, uint32_t)             \
    X(NORI_INT64, i64, int64_t, int64_t, uint64_t)
#define NORI__REF_UNSIGNED(X)                                  \
    X(NORI_UINT8, u8, uint8_t, uint8_t, uint32_t)              \
    X(NORI_UINT16, u16, uint16_t, uint16_t, uint32_t)          \
    X(NORI_UINT32, u32, uint32_t, uint32_t, uint32_t)          \
    X(NORI_UINT64, u64, uint64_t, uint64_t, uint64_t)
#define NORI__REF_INTS(X) NORI__REF_SIGNED(X) NORI__REF_UNSIGNED(X)
#define NORI__REF_NUMBERS(X) NORI__REF_FLOATS(X) NORI__REF_INTS(X)
#define NORI__REF_BOOL(X) X(NORI_BOOL, bool, uint8_t, uint8_t, uint32_t)

#define NORI__REF_PLAIN(TYPE, name, stored, value, wrap)                                       \
    static inline value nori__load_##name(const stored *p) { return *p; }                      \
    static inline void nori__store_##name(stored *p, value v) { *p = v; }
NORI__REF_PLAIN(NORI_FLOAT, f32, float, float, float)
NORI__REF_PLAIN(NORI_DOUBLE, f64, double, double, double)
NORI__REF_INTS(NORI__REF_PLAIN)
NORI__REF_BOOL(NORI__REF_PLAIN)
static inline float nori__load_f16(const uint16_t *p) { return nori__f16_to_f32(*p); }
static inline void nori__store_f16(uint16_t *p, float v) { *p = nori__f32_to_f16(v); }
static inline float nori__load_bf16(const uint16_t *p) { return nori__bf16_to_f32(*p); }
static inline void nori__store_bf16(uint16_t *p, float v) { *p = nori__f32_to_bf16(v); }

/* ---- errors ---- */

/* DATA: "input 1 of Add has type string, which is not supported here". */
nori_status nori__ref_bad_type(const nori_call *call, uint32_t input);
/* DATA when input i is absent or not a tensor. */
nori_status nori__ref_need(const nori_call *call, uint32_t input);
/* The input, or NULL when it is absent (past the end too). */
static inline const nori_tensor *nori__ref_in(const nori_call *call, uint32_t i)
{
    return i < call->n_in ? call->in[i] : NULL;
}
/* The output, or NULL when nobody wants it. */
static inline nori_tensor *nori__ref_out(const nori_call *call, uint32_t i)
{
    return i < call->n_out ? call->out[i] : NULL;
}

/* ---- blocks ---- */

enum { NORI__REF_BLOCK = 256 }; /* elements a kernel keeps on its stack at a time */

/* n elements from index first on, step 0 (the same one n times) or 1, as double or int64. Any
 * numeric type or bool; complex gives the real part. Conversions are C casts; from float to
 * int64 NaN gives 0 and what does not fit saturates. */
void nori__ref_load_f64(const nori_tensor *t, int64_t first, int64_t step, int64_t n, double *out);
void nori__ref_load_i64(const nori_tensor *t, int64_t first, int64_t step, int64_t n,
                        int64_t *out);
/* The reverse; integers as nori__tensor_set_f64 and _set_i64 convert them. */
void nori__ref_store_f64(nori_tensor *t, int64_t first, int64_t n, const double *in);
void nori__ref_store_i64(nori_tensor *t, int64_t first, int64_t n, const int64_t *in);

/* ---- broadcasting ---- */

enum { NORI__REF_ARGS = 4 };

/* One line of a broadcast: n elements of the output from index out on, which lie side by side,
 * and of each input from index in[i] on, with step[i] 0 (one element for all) or 1. Indices
 * count elements of the whole tensor. */
typedef struct nori__ref_line {
    int64_t n, out;
    int64_t in[NORI__REF_ARGS];
    int64_t step[NORI__REF_ARGS];
    nori_tensor *to;
    const nori_tensor *const *from;
    void *user;
} nori__ref_line;
typedef void (*nori__ref_line_fn)(const nori__ref_line *line);

/* Start of the line in memory, for types of whole bytes. */
#define NORI__LINE_OUT(line, stored) ((stored *)(line)->to->data + (line)->out)
#define NORI__LINE_IN(line, i, stored) ((const stored *)(line)->from[i]->data + (line)->in[i])

/* Calls fn for lines that cover output `to` (call->threads of them at once: fn only writes its
 * part). Inputs are broadcast to its shape; one that does not fit is an error DATA. Dimensions
 * that run alike in all inputs are joined, so equal shapes are one long line (cut for threads). */
nori_status nori__ref_lines(nori_call *call, nori_tensor *to, const nori_tensor *const *from,
                            int n_from, nori__ref_line_fn fn, void *user);

/* Two inputs of one type, lines by that type (NULL: not supported), into output 0. */
nori_status nori__ref_two(nori_call *call, const nori__ref_line_fn *lines);

/* A function of one element. f32 may be NULL; it is used for float tensors instead of f64. */
typedef struct nori__ref_function {
    double (*f64)(double x, const double *param);
    float (*f32)(float x);
    double param[2];
} nori__ref_function;
/* Output 0 = f(input 0), for floating-point tensors. */
nori_status nori__ref_apply(nori_call *call, const nori__ref_function *f);

/* The same without calling: all lines one after the other, for kernels that can fail in between.
 *     nori__ref_walk w;
 *     NORI__TRY(nori__ref_walk_start(call, &w, to, from, n));
 *     while (nori__ref_walk_next(&w)) { ... w.line ... } */
typedef struct nori__ref_walk {
    nori__ref_line line;
    int rank, args;
    int64_t dims[NORI_MAX_RANK + 1];                      /* joined, the line's length last */
    int64_t stride[NORI__REF_ARGS][NORI_MAX_RANK + 1];    /* elements; 0: broadcast */
    int64_t at[NORI_MAX_RANK + 1];
    int64_t lines, done;
} nori__ref_walk;
nori_status nori__ref_walk_start(nori_call *call, nori__ref_walk *walk, nori_tensor *to,
                                 const nori_tensor *const *from, int n_from);
bool nori__ref_walk_next(nori__ref_walk *walk);

/* Elements of one tensor to another of the same type and count, strings too. */
nori_status nori__ref_copy(nori_call *call, const nori_tensor *from, nori_tensor *to);

/* Row-major strides in elements. */
void nori__ref_strides(int rank, const int64_t *dims, int64_t *strides);

/* axis attribute made non-negative for a tensor's rank; error DATA otherwise. */
nori_status nori__ref_axis(const nori_call *call, int64_t axis, int rank, int *out);

/* dims seen as (outer, axis, inner): products before, at, and after an axis. */
typedef struct nori__ref_split {
    int64_t outer, length, inner;
} nori__ref_split;
nori__ref_split nori__ref_split_at(const nori_tensor *t, int axis);

#endif
