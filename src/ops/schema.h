/* schema.h: facts about every operator and version: arity, types, attributes, defaults.
 * The data are schema.inc, made by tools/gen_schema.py from tools/facts/; not edited by hand. */
#ifndef NORI_OPS_SCHEMA_H
#define NORI_OPS_SCHEMA_H

#include "onnx/onnx.h"

/* What an input or output may be: bit nori_type for tensors of that type (bits 1 to 26), then: */
enum {
    NORI__TYPES_SEQ_TENSOR = 32, /* sequence of tensors */
    NORI__TYPES_SEQ_MAP = 33,
    NORI__TYPES_OPT_TENSOR = 34,
    NORI__TYPES_OPT_SEQ = 35,
    NORI__TYPES_MAP = 36,
    NORI__TYPES_SPARSE = 37
};

typedef enum nori__arg_option {
    NORI__ARG_SINGLE,
    NORI__ARG_OPTIONAL,
    NORI__ARG_VARIADIC
} nori__arg_option;

typedef struct nori__schema_arg {
    const char *name;
    const char *constraint; /* "T", or NULL when the type is fixed */
    uint64_t types;
    uint8_t option;         /* nori__arg_option */
    bool homogeneous;       /* variadic: all of one type */
} nori__schema_arg;

typedef struct nori__schema_attr {
    const char *name;
    nori__pb_attr_kind kind;
    bool required;
    const char *default_text; /* "0", "1e-05", "NOTSET", "[0,2,3]"; NULL: none */
} nori__schema_attr;

typedef struct nori__schema {
    const char *domain; /* "" for ai.onnx */
    const char *name;
    int since;
    bool deprecated;  /* from this version on */
    bool function;    /* has a function body in ONNX */
    bool runtime;     /* no version of ONNX has it: runtimes know it, whatever the operator set */
    uint16_t min_in, max_in, min_out, max_out; /* 65535: any number */
    const nori__schema_arg *in, *out;          /* last one repeats when variadic */
    uint16_t n_in, n_out, n_attr;
    const nori__schema_attr *attrs;
} nori__schema;

#define NORI__OPSET_MAX_ONNX 28
#define NORI__OPSET_MAX_ML 5

/* The version in force under an opset: the newest with since <= opset. NULL: no such operator
 * there (too new, or unknown). com.microsoft operators have since 1. */
const nori__schema *nori__schema_find(const char *domain, const char *name, int64_t opset);
/* Sorted by domain, name, since; NULL past the last. */
const nori__schema *nori__schema_at(size_t index);
int64_t nori__opset_max(const char *domain); /* newest known opset of the domain; 0: unknown */

#endif
