/* onnx.h: the messages of onnx.proto as plain structs over the file's bytes.
 *
 * Stands between the mapped file and graph/. Strings and raw data are views into the file (or an
 * external data mapping); lists and structs live in the reader's arena. Fields a build does not
 * know are kept as byte ranges and written back. Reading never recurses; nesting, counts and
 * lengths are checked here, once. Field numbers and meanings: onnx.proto of ONNX 1.23 (IR 14). */
#ifndef NORI_ONNX_ONNX_H
#define NORI_ONNX_ONNX_H

#include "base/base.h"

/* Begins every message struct. */
typedef struct nori__pb_head {
    nori__str bytes; /* the message as it stood in the file (p NULL when made by us) */
    uint32_t present; /* bit i: row i of its field table was there; zeros among them are kept */
    const struct nori__pb_unknown {
        nori__str bytes; /* tag and payload */
        uint32_t number;
        const struct nori__pb_unknown *next;
    } *unknown;
} nori__pb_head;

#define NORI__PB_LIST(type) \
    struct {                \
        type *items;        \
        size_t count;       \
    }

/* A tensor's varints. Many in one payload stay as the file has them: items is NULL then, packed holds
 * them, and half says that they are those of int32_data (numbers.c reads either form). */
#define NORI__PB_NUMBERS(type) \
    struct {                   \
        type *items;           \
        size_t count;          \
        nori__str packed;      \
        bool half;             \
    }

typedef struct nori__pb_entry { /* StringStringEntryProto */
    nori__pb_head head;
    nori__str key, value;
} nori__pb_entry;

typedef struct nori__pb_opset { /* OperatorSetIdProto */
    nori__pb_head head;
    nori__str domain;
    int64_t version;
} nori__pb_opset;

typedef struct nori__pb_dim { /* TensorShapeProto.Dimension */
    nori__pb_head head;
    bool has_value, has_param;
    int64_t value;
    nori__str param, denotation;
} nori__pb_dim;

typedef struct nori__pb_shape {
    nori__pb_head head;
    NORI__PB_LIST(nori__pb_dim) dims;
} nori__pb_shape;

/* TypeProto, flattened: kind says which of its oneof members was there. */
typedef struct nori__pb_type {
    nori__pb_head head;
    nori_kind kind;          /* UNKNOWN: none */
    int32_t elem;            /* tensor, sparse: element type; map: key type */
    nori__pb_shape *shape;   /* tensor, sparse; NULL: rank unknown */
    struct nori__pb_type *of; /* sequence, optional: element; map: value */
    nori__str denotation;
    struct nori__pb_head *wrapped; /* the oneof member's own head (unknown fields) */
} nori__pb_type;

typedef struct nori__pb_value { /* ValueInfoProto */
    nori__pb_head head;
    nori__str name, doc;
    nori__pb_type *type; /* NULL: not said */
    NORI__PB_LIST(nori__pb_entry) metadata;
} nori__pb_value;

typedef struct nori__pb_tensor { /* TensorProto */
    nori__pb_head head;
    NORI__PB_LIST(int64_t) dims;
    int32_t data_type;
    nori__str name, doc;
    bool has_raw;
    nori__str raw;                          /* raw_data */
    NORI__PB_LIST(float) floats;            /* float_data; as raw at any address: to be taken as bytes */
    NORI__PB_LIST(double) doubles;          /* double_data, the same */
    NORI__PB_NUMBERS(int64_t) ints;         /* int32_data, sign-extended, or int64_data */
    NORI__PB_NUMBERS(uint64_t) uints;       /* uint64_data */
    NORI__PB_LIST(nori__str) strings;       /* string_data */
    NORI__PB_LIST(nori__pb_entry) external; /* external_data: location, offset, length, ... */
    int32_t data_location;                  /* 1: external */
    NORI__PB_LIST(nori__pb_entry) metadata;
} nori__pb_tensor;

typedef struct nori__pb_sparse { /* SparseTensorProto */
    nori__pb_head head;
    nori__pb_tensor *values, *indices;
    NORI__PB_LIST(int64_t) dims;
} nori__pb_sparse;

/* SequenceProto and OptionalProto, which number their fields alike (an optional has one item at
 * most), and MapProto, whose values are a sequence. */
typedef struct nori__pb_group {
    nori__pb_head head;
    nori__str name;
    int32_t elem; /* what the items are (1 tensor ... 5 optional); maps: type of the keys */
    NORI__PB_LIST(nori__pb_tensor) tensors;
    NORI__PB_LIST(nori__pb_sparse) sparses;
    NORI__PB_LIST(struct nori__pb_group *) sequences;
    NORI__PB_LIST(struct nori__pb_group *) maps;
    NORI__PB_LIST(struct nori__pb_group *) optionals;
    NORI__PB_LIST(int64_t) keys;          /* maps: of integer keys */
    NORI__PB_LIST(nori__str) string_keys; /* maps: of string keys */
    struct nori__pb_group *values;        /* maps */
} nori__pb_group;

/* AttributeProto.AttributeType, as numbered there. */
typedef enum nori__pb_attr_kind {
    NORI__ATTR_NONE = 0,
    NORI__ATTR_FLOAT = 1,
    NORI__ATTR_INT = 2,
    NORI__ATTR_STRING = 3,
    NORI__ATTR_TENSOR = 4,
    NORI__ATTR_GRAPH = 5,
    NORI__ATTR_FLOATS = 6,
    NORI__ATTR_INTS = 7,
    NORI__ATTR_STRINGS = 8,
    NORI__ATTR_TENSORS = 9,
    NORI__ATTR_GRAPHS = 10,
    NORI__ATTR_SPARSE = 11,
    NORI__ATTR_SPARSES = 12,
    NORI__ATTR_TYPE = 13,
    NORI__ATTR_TYPES = 14
} nori__pb_attr_kind;

typedef struct nori__pb_attr { /* AttributeProto */
    nori__pb_head head;
    nori__str name, ref_name, doc;
    nori__pb_attr_kind kind; /* files before IR 2 leave it out: then told by the field present */
    float f;
    int64_t i;
    nori__str s;
    nori__pb_tensor *t;
    struct nori__pb_graph *g;
    nori__pb_sparse *sparse;
    nori__pb_type *tp;
    NORI__PB_LIST(float) floats;
    NORI__PB_LIST(int64_t) ints;
    NORI__PB_LIST(nori__str) strings;
    NORI__PB_LIST(nori__pb_tensor) tensors;
    NORI__PB_LIST(struct nori__pb_graph *) graphs;
    NORI__PB_LIST(nori__pb_sparse) sparses;
    NORI__PB_LIST(nori__pb_type) types;
} nori__pb_attr;

typedef struct nori__pb_node { /* NodeProto */
    nori__pb_head head;
    NORI__PB_LIST(nori__str) inputs;
    NORI__PB_LIST(nori__str) outputs;
    nori__str name, op_type, domain, overload, doc;
    NORI__PB_LIST(nori__pb_attr) attrs;
    NORI__PB_LIST(nori__pb_entry) metadata;
    NORI__PB_LIST(nori__str) devices; /* NodeDeviceConfigurationProto messages, kept as bytes */
} nori__pb_node;

typedef struct nori__pb_graph { /* GraphProto */
    nori__pb_head head;
    NORI__PB_LIST(nori__pb_node) nodes;
    nori__str name, doc;
    NORI__PB_LIST(nori__pb_tensor) initializers;
    NORI__PB_LIST(nori__pb_sparse) sparse_initializers;
    NORI__PB_LIST(nori__pb_value) inputs;
    NORI__PB_LIST(nori__pb_value) outputs;
    NORI__PB_LIST(nori__pb_value) value_info;
    NORI__PB_LIST(nori__str) quantization; /* TensorAnnotation messages, kept as bytes */
    NORI__PB_LIST(nori__pb_entry) metadata;
} nori__pb_graph;

typedef struct nori__pb_function { /* FunctionProto */
    nori__pb_head head;
    nori__str name, domain, overload, doc;
    NORI__PB_LIST(nori__str) inputs;
    NORI__PB_LIST(nori__str) outputs;
    NORI__PB_LIST(nori__str) attr_names;    /* without default */
    NORI__PB_LIST(nori__pb_attr) attrs;     /* with default */
    NORI__PB_LIST(nori__pb_node) nodes;
    NORI__PB_LIST(nori__pb_opset) opsets;
    NORI__PB_LIST(nori__pb_value) value_info;
    NORI__PB_LIST(nori__pb_entry) metadata;
} nori__pb_function;

typedef struct nori__pb_model { /* ModelProto */
    nori__pb_head head;
    int64_t ir_version; /* 0: not said */
    NORI__PB_LIST(nori__pb_opset) opsets;
    nori__str producer_name, producer_version, domain, doc;
    int64_t model_version;
    nori__pb_graph *graph;
    NORI__PB_LIST(nori__pb_entry) metadata;
    NORI__PB_LIST(nori__str) training; /* TrainingInfoProto messages, kept as bytes */
    NORI__PB_LIST(nori__pb_function) functions;
    NORI__PB_LIST(nori__str) configuration; /* DeviceConfigurationProto messages, kept as bytes */
} nori__pb_model;

#define NORI__IR_VERSION_MAX 14 /* newest IR this build knows; newer ones are a warning */
#define NORI__PB_MAX_NESTING 64 /* graphs within graphs, types within types */

/* Reads a ModelProto (read.c). On error err has the byte offset, what was expected and found.
 * data must outlive the arena. Unknown fields are counted and the first one described through
 * first_unknown (field number, message name and byte offset in data), for the caller's warning. */
typedef struct nori__pb_report {
    size_t unknown_fields;
    uint32_t first_number;
    uint64_t first_offset;
    const char *first_message; /* "NodeProto" */
} nori__pb_report;
nori_status nori__pb_read_model(nori__arena *arena, const uint8_t *data, size_t size,
                                nori__pb_model **model, nori__pb_report *report, nori_error *err);
/* One TensorProto, as test data files hold it. */
nori_status nori__pb_read_tensor(nori__arena *arena, const uint8_t *data, size_t size,
                                 nori__pb_tensor **tensor, nori_error *err);
/* One SequenceProto, OptionalProto or MapProto: the bytes do not say which, kind does. */
nori_status nori__pb_read_group(nori__arena *arena, const uint8_t *data, size_t size,
                                nori_kind kind, nori__pb_group **group, nori_error *err);
/* One entry after another of a tensor's ints or uints (numbers.c); no more than count may be taken. */
typedef struct nori__pb_cursor {
    const uint64_t *items;
    const uint8_t *at; /* in the packed bytes */
    bool half;
} nori__pb_cursor;
nori__pb_cursor nori__pb_numbers_of(const void *numbers);
uint64_t nori__pb_number(nori__pb_cursor *cursor);

/* Writes (write.c): appends the encoded message to text. Fields in number order, packed where
 * proto3 packs, unknown fields kept behind the known ones. Sizes are computed before writing. */
nori_status nori__pb_write_model(const nori__pb_model *model, nori__text *out, nori_error *err);
nori_status nori__pb_write_tensor(const nori__pb_tensor *tensor, nori__text *out,
                                  nori_error *err);
nori_status nori__pb_write_group(const nori__pb_group *group, nori_kind kind, nori__text *out,
                                 nori_error *err);

/* The same a piece at a time, so that the whole is nowhere in memory. sink gives false to stop: IO,
 * without an error text. size: of the whole message; with sink NULL that is all that is found out. */
typedef bool (*nori__pb_sink)(void *user, const void *bytes, size_t size);
nori_status nori__pb_write_model_to(const nori__pb_model *model, const nori_allocator *a,
                                    nori__pb_sink sink, void *user, size_t *size, nori_error *err);

/* each_tensor.c: a copy of a model's messages in which fn may change each tensor; what no tensor lies
 * in is shared. initializer: false for tensors of attributes and parts of sparse ones. */
typedef nori_status (*nori__pb_tensor_fn)(void *user, nori__pb_tensor *tensor, bool initializer,
                                          nori_error *err);
nori_status nori__pb_each_tensor(nori__arena *arena, const nori__pb_model *model,
                                 nori__pb_tensor_fn fn, void *user, nori__pb_model **copy,
                                 nori_error *err);

/* External data (external.c). A set of mapped files of one model folder, each mapped once. The
 * location must be relative, normalized, free of "..", NUL, backslash, drive and UNC forms, and
 * its real path must lie in base_dir or in the folder of the model's own real path, unless
 * allow_outside. Error messages name location, reason and --allow-outside where it would help.
 * base_dir NULL: no file at all, only what is lent (nori__external_lend). */
typedef struct nori__external nori__external;
nori_status nori__external_create(const nori_allocator *a, const char *base_dir,
                                  const char *model_real_dir, bool allow_outside,
                                  nori__external **external, nori_error *err);
/* Gives back the pages of all files mapped so far (nori__map_relax). */
void nori__external_relax(const nori__external *e);
/* Whether these bytes lie in a file mapped so far. NULL is fine. */
bool nori__external_maps(const nori__external *e, const void *data, size_t size);
void nori__external_free(nori__external *external);
/* View of length bytes at offset (entries "offset", "length" are decimal; a missing length means
 * expected bytes); refused unless it is exactly expected bytes and inside the file. */
nori_status nori__external_view(nori__external *external, const nori__pb_tensor *tensor,
                                uint64_t expected, nori__str *view, nori_error *err);
/* The same, and whether the bytes are a file's: then nori__map_relax_range may be used on them. */
nori_status nori__external_find(nori__external *external, const nori__pb_tensor *tensor,
                                uint64_t expected, nori__str *view, bool *of_file,
                                nori_error *err);
/* Bytes in memory under a location of their own, which no file can have: for models that tools make
 * of others. They must outlive the set. NULL: out of memory. */
const char *nori__external_lend(nori__external *external, nori__str bytes, bool of_file);
/* Why a location may not be opened or written, "is empty" say; NULL: it may. */
const char *nori__external_bad_location(nori__str location);
/* Whether one of the files read so far is the one at this path. */
bool nori__external_reads(const nori__external *external, const char *path);

#endif
