/* nori.h: load an ONNX model, run it. One page to learn.
 *
 *     nori_error err = {0};
 *     nori_model *model = NULL;
 *     nori_session *session = NULL;
 *     nori_tensor *in = NULL, *out[1] = {NULL};
 *     if (nori_model_load(NULL, "digits.onnx", NULL, &model, &err) ||
 *         nori_session_create(model, NULL, &session, &err) ||
 *         nori_tensor_create(NULL, NORI_FLOAT, 4, (int64_t[]){1, 1, 28, 28}, &in, &err)) ...
 *     nori_session_run(session, (const nori_tensor *const[]){in}, 1, out, 1, &err);
 *
 * Conventions. Every function that can fail returns nori_status (NORI_OK is 0) and, if the caller
 * gave an error object, fills it: what is wrong, where, what to do. The first error wins; start
 * with a zeroed one. The library never prints, aborts or exits. What nori_x_create or _load made,
 * nori_x_free frees; free accepts NULL. Pointers returned by accessors live as long as the object
 * asked. A function that gives no status and is handed NULL, for an object or for where an answer
 * goes, does nothing and returns 0, NULL or what else stands for "unknown" or "none" there; only what
 * nori hands to callbacks (call, infer, part, tracer) is never NULL. A function is safe to call from
 * several threads at once on different objects; which objects may be shared is said at each type.
 * Sizes are bytes, dimensions are element counts.
 */
#ifndef NORI_NORI_H
#define NORI_NORI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NORI_API
#if defined(__GNUC__)
#define NORI_API __attribute__((visibility("default")))
#else
#define NORI_API
#endif
#endif

#define NORI_VERSION_MAJOR 0
#define NORI_VERSION_MINOR 1
#define NORI_VERSION_PATCH 0
/* "0.1.0"; static storage. */
NORI_API const char *nori_version(void);

/* ---- status and error ------------------------------------------------------------------- */

/* One list of what can go wrong; the comment is nori_status_text()'s. */
#define NORI_STATUS_LIST(X)                                                                   \
    X(OK, "no error")                                                                         \
    X(ERROR_ARGUMENT, "an argument is not valid")                                             \
    X(ERROR_MEMORY, "out of memory")                                                          \
    X(ERROR_IO, "a file could not be read or written")                                        \
    X(ERROR_FORMAT, "the bytes are not a valid file of this kind")                            \
    X(ERROR_MODEL, "the model is not valid ONNX")                                             \
    X(ERROR_DATA, "the input data does not fit the model")                                    \
    X(ERROR_UNSUPPORTED, "not supported")                                                     \
    X(ERROR_UNAVAILABLE, "not available on this machine")                                     \
    X(ERROR_LIMIT, "a resource limit was exceeded")                                           \
    X(ERROR_CANCELLED, "cancelled")                                                           \
    X(ERROR_INTERNAL, "a fault in nori itself")

typedef enum nori_status {
#define NORI_STATUS_ENUM(name, text) NORI_##name,
    NORI_STATUS_LIST(NORI_STATUS_ENUM)
#undef NORI_STATUS_ENUM
} nori_status;

/* Static text for a status; never NULL. */
NORI_API const char *nori_status_text(nori_status status);

/* Owned by the caller, usually on the stack, zeroed before first use. Strings are always
 * terminated; what does not fit is cut and ends in "...". */
typedef struct nori_error {
    nori_status status;
    int has_offset;      /* 1 when offset says where in the file */
    uint64_t offset;     /* byte offset in the file the message is about */
    char message[2048];  /* what is wrong, what was expected, what was found */
    char where[512];     /* file and node path, or empty */
    char hint[512];      /* what to do next, or empty */
} nori_error;

/* ---- types ------------------------------------------------------------------------------ */

/* Element types, numbered as TensorProto.DataType in onnx.proto; then what is not a tensor. */
typedef enum nori_type {
    NORI_UNDEFINED = 0,
    NORI_FLOAT = 1,
    NORI_UINT8 = 2,
    NORI_INT8 = 3,
    NORI_UINT16 = 4,
    NORI_INT16 = 5,
    NORI_INT32 = 6,
    NORI_INT64 = 7,
    NORI_STRING = 8,
    NORI_BOOL = 9,
    NORI_FLOAT16 = 10,
    NORI_DOUBLE = 11,
    NORI_UINT32 = 12,
    NORI_UINT64 = 13,
    NORI_COMPLEX64 = 14,
    NORI_COMPLEX128 = 15,
    NORI_BFLOAT16 = 16,
    NORI_FLOAT8E4M3FN = 17,
    NORI_FLOAT8E4M3FNUZ = 18,
    NORI_FLOAT8E5M2 = 19,
    NORI_FLOAT8E5M2FNUZ = 20,
    NORI_UINT4 = 21,
    NORI_INT4 = 22,
    NORI_FLOAT4E2M1 = 23,
    NORI_FLOAT8E8M0 = 24,
    NORI_UINT2 = 25,
    NORI_INT2 = 26,
    NORI_TYPE_COUNT = 27
} nori_type;

/* "float32", "int8", ...; "?" for an unknown number. Static storage. */
NORI_API const char *nori_type_name(nori_type type);
/* Bits of one element: 4 for int4 (two share a byte, first in the low half); 0 for strings. */
NORI_API unsigned nori_type_bits(nori_type type);

/* What a value can be. Everything but a tensor is made of items, see nori_tensor_item(). */
typedef enum nori_kind {
    NORI_KIND_UNKNOWN = 0,
    NORI_KIND_TENSOR,
    NORI_KIND_SEQUENCE, /* items: the elements */
    NORI_KIND_OPTIONAL, /* items: none or one */
    NORI_KIND_MAP,      /* items: keys (1-D int64 or string) and values (1-D tensor) */
    NORI_KIND_SPARSE    /* items: values (1-D) and indices */
} nori_kind;

/* Largest rank nori takes; a model with more is refused with NORI_ERROR_LIMIT. */
#define NORI_MAX_RANK 16

/* ---- environment ------------------------------------------------------------------------ */

/* Allocator hook. alloc returns memory aligned to align (a power of two) or NULL; release gets
 * the size that was asked for. Called from any thread. */
typedef struct nori_allocator {
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*release)(void *user, void *memory, size_t size);
    void *user;
} nori_allocator;

typedef enum nori_log_level { NORI_LOG_WARNING = 1, NORI_LOG_INFO, NORI_LOG_DEBUG } nori_log_level;

typedef struct nori_env_options {
    size_t size;              /* sizeof(nori_env_options), set by _default */
    nori_allocator allocator; /* all NULL: malloc */
    void (*log)(void *user, nori_log_level level, const char *text); /* NULL: silent */
    void *log_user;
    int threads; /* of the shared pool; 0: as affinity mask and cgroup quota allow */
} nori_env_options;

/* What models and sessions share: allocator, log callback, thread pool. Immutable after creation
 * and shared by any threads; must outlive what was made with it. Where a function takes an
 * environment, NULL means the default one (malloc, silent, all cores allowed), made on first
 * use and kept until the process ends. */
typedef struct nori_env nori_env;

NORI_API void nori_env_options_default(nori_env_options *options);
NORI_API nori_status nori_env_create(const nori_env_options *options, nori_env **env,
                                     nori_error *error);
NORI_API void nori_env_free(nori_env *env);
/* Threads the pool may use, the caller's own included. */
NORI_API int nori_env_threads(const nori_env *env);

/* ---- tensors ---------------------------------------------------------------------------- */

/* One value: a tensor with type, shape and bytes (row-major, native byte order, possibly empty), or a
 * sequence, optional or map made of other values. Reference counted: retain and free may be
 * called from any thread; the bytes belong to whoever writes them, without locks. */
typedef struct nori_tensor nori_tensor;

/* String elements of NORI_STRING tensors: bytes need not be terminated and may hold NUL. */
typedef struct nori_string {
    const char *data;
    size_t size;
} nori_string;

/* A new zeroed tensor. dims may be NULL for rank 0. Errors: ARGUMENT, LIMIT, MEMORY. */
NORI_API nori_status nori_tensor_create(nori_env *env, nori_type type, int rank,
                                        const int64_t *dims, nori_tensor **tensor,
                                        nori_error *error);
/* A tensor over the caller's memory, which must be aligned to its elements, hold size bytes
 * (exactly what type and shape need; data may be NULL when that is 0) and outlive the tensor, or
 * until release(user, data) is called (NULL: never called). Not for strings. */
NORI_API nori_status nori_tensor_wrap(nori_env *env, nori_type type, int rank, const int64_t *dims,
                                      void *data, size_t size,
                                      void (*release)(void *user, void *data), void *user,
                                      nori_tensor **tensor, nori_error *error);
/* A NORI_STRING tensor; the strings are copied. count must match the shape. */
NORI_API nori_status nori_tensor_strings(nori_env *env, int rank, const int64_t *dims,
                                         const nori_string *strings, size_t count,
                                         nori_tensor **tensor, nori_error *error);
/* A sequence, optional, map or sparse tensor over items, each retained. Sparse tensors take
 * their dense shape by rank and dims; others pass 0 and NULL. */
NORI_API nori_status nori_tensor_group(nori_env *env, nori_kind kind, nori_tensor *const *items,
                                       size_t count, int rank, const int64_t *dims,
                                       nori_tensor **tensor, nori_error *error);
NORI_API nori_tensor *nori_tensor_retain(const nori_tensor *tensor);
NORI_API void nori_tensor_free(nori_tensor *tensor);

NORI_API nori_kind nori_tensor_kind(const nori_tensor *tensor);
NORI_API nori_type nori_tensor_type(const nori_tensor *tensor);
NORI_API int nori_tensor_rank(const nori_tensor *tensor);
NORI_API const int64_t *nori_tensor_dims(const nori_tensor *tensor); /* rank entries */
NORI_API int64_t nori_tensor_elements(const nori_tensor *tensor);    /* product of dims */
NORI_API size_t nori_tensor_bytes(const nori_tensor *tensor);        /* size of data */
NORI_API void *nori_tensor_data(nori_tensor *tensor); /* NULL when empty; strings: nori_string[] */
NORI_API const void *nori_tensor_const_data(const nori_tensor *tensor);
NORI_API size_t nori_tensor_item_count(const nori_tensor *tensor); /* of a group; else 0 */
NORI_API nori_tensor *nori_tensor_item(const nori_tensor *tensor, size_t index); /* borrowed */

/* ---- models ----------------------------------------------------------------------------- */

typedef struct nori_load_options {
    size_t size;             /* sizeof, set by _default */
    int strict;              /* 1: unknown fields or a newer IR version are errors, not warnings */
    int allow_outside;       /* 1: external data may lie outside the model's folder */
    uint64_t max_bytes;      /* largest model file taken; 0: no limit but memory */
} nori_load_options;

/* The graph as its file says it, over the mapped file. One owner: not to be used from two
 * threads at once. Sessions keep what they need: a model may be freed before them. */
typedef struct nori_model nori_model;

/* What one runtime input or output of a graph may be. dims[i] is -1 where any size will do;
 * dim_names[i] is the name of such a dimension or NULL. rank is -1 when unknown. */
typedef struct nori_value_info {
    const char *name;
    nori_kind kind;
    nori_type type;
    int rank;
    const int64_t *dims;
    const char *const *dim_names;
    int optional; /* 1: an input with a default, may be left out */
} nori_value_info;

NORI_API void nori_load_options_default(nori_load_options *options);
/* Reads and maps a model file. Errors: IO, FORMAT (with byte offset), MODEL, LIMIT, MEMORY. */
NORI_API nori_status nori_model_load(nori_env *env, const char *path,
                                     const nori_load_options *options, nori_model **model,
                                     nori_error *error);
/* The same over memory, which is not copied and must outlive the model and its sessions. base_dir
 * is where external data is looked for; NULL refuses external data. */
NORI_API nori_status nori_model_load_memory(nori_env *env, const void *data, size_t size,
                                            const char *base_dir, const nori_load_options *options,
                                            nori_model **model, nori_error *error);
/* Writes the model; the file appears whole or not at all. What was not changed stays as it was,
 * unknown fields included. */
NORI_API nori_status nori_model_save(const nori_model *model, const char *path, nori_error *error);
NORI_API void nori_model_free(nori_model *model);

/* Runtime inputs (initializers that are also listed as inputs come last, optional) and outputs. */
NORI_API size_t nori_model_input_count(const nori_model *model);
NORI_API const nori_value_info *nori_model_input(const nori_model *model, size_t index);
NORI_API size_t nori_model_output_count(const nori_model *model);
NORI_API const nori_value_info *nori_model_output(const nori_model *model, size_t index);
/* What loading had to say but did not refuse (newer IR version, unknown fields, shadowed
 * names ...): NULL past the last. */
NORI_API const char *nori_model_warning(const nori_model *model, size_t index);

/* ---- sessions --------------------------------------------------------------------------- */

/* What is being prepared: for progress bars and logs. Strings are only good during the call. */
typedef struct nori_progress {
    size_t size;
    const char *phase;    /* infer optimize compile plan; cache: text says hit or miss, and why */
    const char *provider; /* whose part is being compiled, or "" */
    size_t done, total;   /* of the phase, in its own steps; total 0: not known */
    const char *text;     /* for people: what exactly, or "" */
} nori_progress;

typedef struct nori_session_options {
    size_t size;            /* sizeof, set by _default */
    const char *providers;  /* comma-separated, first choice first; NULL: "cpu" */
    int fallback;           /* 1: a provider that cannot be had is a warning, not an error */
    int threads;            /* at most this many per run; 0: the environment's pool */
    int level;              /* optimization: 0 none, 1 standard rewrites, 2 provider's own */
    const char *const *dim_names; /* dimensions fixed by name before compiling ... */
    const int64_t *dim_values;    /* ... to these sizes */
    size_t dim_count;
    uint64_t max_bytes;     /* cap for all that one run holds: planned activations, values whose
                               sizes only data tell, what loops carry, sequences, what kernels
                               take on the way; 0: no cap */
    const char *passes;     /* comma-separated: only these standard rewrites; NULL: all */
    int split_only;         /* 1: only decide who would run what (provider.h tells); such a session
                               compiles nothing and cannot run */
    int profile;            /* 1: each node of each run is timed, see tools.h */
    /* May be NULL. Called by the running thread with every value a node has just made (inner ones
     * and those of subgraphs too), under its name in the compiled copy: at level 0 the model's own
     * names. The tensor is only good during the call. For calibration and comparing layers. */
    void (*watch)(void *user, const char *value, const nori_tensor *tensor);
    void *watch_user;
    /* May be NULL. Called by the creating thread, before a step begins and when a phase is done. */
    void (*progress)(void *user, const nori_progress *progress);
    void *progress_user;
    const char *cache_dir;  /* an existing folder where compiled parts and packed weights are kept between
                               sessions and processes; NULL: nowhere. As trusted as the program itself. */
} nori_session_options;

/* A model compiled for providers and options. Immutable: any number of threads may run one
 * session at once, each run with a context of its own from the session's free list. */
typedef struct nori_session nori_session;

NORI_API void nori_session_options_default(nori_session_options *options);
/* Compiles. Every operator that no provider can run is listed in one error (UNSUPPORTED). */
NORI_API nori_status nori_session_create(const nori_model *model,
                                         const nori_session_options *options,
                                         nori_session **session, nori_error *error);
NORI_API void nori_session_free(nori_session *session);
NORI_API size_t nori_session_input_count(const nori_session *session);
NORI_API const nori_value_info *nori_session_input(const nori_session *session, size_t index);
NORI_API size_t nori_session_output_count(const nori_session *session);
NORI_API const nori_value_info *nori_session_output(const nori_session *session, size_t index);

/* Runs once. inputs[i] fits session input i (NULL: its default); outputs[i], when NULL, becomes a
 * new tensor the caller frees, else must have the right type and shape and is written; input_count
 * may leave out optional inputs at the end. Input bytes are only read. On error no output is
 * made. Errors: DATA (names input, axis, expected, got), LIMIT, MEMORY, and what data decide. */
NORI_API nori_status nori_session_run(nori_session *session, const nori_tensor *const *inputs,
                                      size_t input_count, nori_tensor **outputs,
                                      size_t output_count, nori_error *error);

/* Whether a value of this kind, type and shape may be fed as input index: the run's own error, DATA, where
 * it may not. For asking before a large value is read. */
NORI_API nori_status nori_session_input_fits(const nori_session *session, size_t index,
                                             const nori_value_info *value, nori_error *error);

/* Memory in bytes: packed weights, the largest activation block any run needed, what all idle
 * contexts hold now. nori_session_trim gives the last back to the system. */
typedef struct nori_memory_stats {
    size_t size; /* sizeof, set by the caller */
    uint64_t packed_bytes, peak_activation_bytes, held_bytes;
} nori_memory_stats;
NORI_API void nori_session_memory(const nori_session *session, nori_memory_stats *stats);
NORI_API void nori_session_trim(nori_session *session);

/* Where the time from file to session went, in nanoseconds of the clock on the wall. */
typedef struct nori_timing {
    size_t size;          /* sizeof, set by the caller */
    uint64_t read_ns;     /* the file's bytes to messages; once a model */
    uint64_t build_ns;    /* messages to the graph; once a model */
    uint64_t infer_ns;    /* copy, functions put in place, old forms upgraded, types inferred */
    uint64_t optimize_ns; /* rewrites, standard and the providers' own */
    uint64_t plan_ns;     /* kernels chosen and prepared (weights packed), lives of values */
} nori_timing;
NORI_API void nori_session_timing(const nori_session *session, nori_timing *timing);

#ifdef __cplusplus
}
#endif
#endif
