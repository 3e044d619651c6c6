/* plan_file.h: a model with what was made of its weights, in one file that is mapped.
 *
 *     8 bytes  "noriplan"
 *     4, 4     version of this form, 2; 0
 *     8 each   bytes of the file; then where these begin and how long they are:
 *              text, messages, ways, table (NORI__PLAN_PART_COUNT parts, in order) and, at multiples of
 *              4096, data, blocks
 *     32       hash, as digits, of what comes before it, text, messages, ways and table
 *     text     what the blocks were made for, as lines
 *     messages the model as ONNX has it; the data of its larger initializers are in "data", which they
 *              name as external data
 *     ways     nothing; or, of a tuned plan, 4 and 4 bytes, threads it was tuned for and 0, and a
 *              nori__way_entry for each layer that does not go its usual way
 *     table    a nori__pack_entry for each block
 * Numbers are in the order of the machine's bytes, as packed weights are: on one of the other order the
 * form's number is another. All a reader follows, offsets, sizes and messages, is checked when it is
 * opened; data and blocks are numbers, which may have any value. */
#ifndef NORI_RUN_PLAN_FILE_H
#define NORI_RUN_PLAN_FILE_H

#include "nori/compile.h"
#include "plan/chosen.h"
#include "run/run.h"

enum { NORI__PLAN_TEXT, NORI__PLAN_MODEL, NORI__PLAN_WAYS, NORI__PLAN_TABLE, NORI__PLAN_DATA,
       NORI__PLAN_BLOCKS, NORI__PLAN_PART_COUNT };
#define NORI__PLAN_MAGIC "noriplan"
#define NORI__PLAN_VERSION 2u
#define NORI__PLAN_PAGE 4096u
#define NORI__PLAN_DATA_NAME "/lent/0" /* the first that nori__external_lend gives */

typedef struct nori__plan_head {
    char magic[8];
    uint32_t version, unused;
    uint64_t bytes;
    struct {
        uint64_t at, size;
    } part[NORI__PLAN_PART_COUNT];
    char hash[32];
} nori__plan_head;

typedef struct nori__plan_file {
    nori__str part[NORI__PLAN_PART_COUNT];
    const nori__pack_entry *entries;
    size_t count;
    const nori__way_entry *ways;
    size_t n_ways;
    uint32_t tuned_threads; /* 0: it is not a tuned one */
} nori__plan_file;

static inline bool nori__plan_is(const void *data, size_t size)
{
    return size >= 8 && memcmp(data, NORI__PLAN_MAGIC, 8) == 0;
}
/* data must outlive the plan. Errors: FORMAT, with what is wrong where. */
nori_status nori__plan_open(nori__arena *arena, const void *data, size_t size,
                            nori__plan_file **plan, nori_error *err);
/* Hash of a head (its own left out) and of text, messages, ways and table. */
void nori__plan_hash(const nori__plan_head *head, const nori__str *part,
                     char out[NORI__HASH_TEXT]);

/* What blocks depend on beside the model, as lines: this library, the CPU's level, options. Memory from
 * arena; NULL: out of memory. */
char *nori__plan_made_for(nori__arena *arena, const nori_session_options *options);
/* The first lines in which two such texts differ, for people. */
void nori__plan_difference(nori__str was, const char *now, char *out, size_t room);

/* plan_use.c: gives a session's kernels the blocks of its model's plan and the ways to go, where they
 * fit; says so or why not. record: notes what they pack instead, and gives them the ways of record. */
nori_status nori__plan_use(nori_session *s, const nori_model *model,
                           const nori_session_options *options, const nori__ways *record,
                           nori_error *err);
/* When all is planned: says of ways of the plan that were none for the model. */
void nori__plan_used(nori_session *s, const nori_session_options *options);
/* plan_cache.c: the same with the session's cache folder, before anything is compiled and after. */
nori_status nori__plan_find(nori_session *s, const nori_model *model,
                            const nori_session_options *options, nori_error *err);
void nori__plan_keep(nori_session *s, const nori_session_options *options);
/* plan_write.c: what the session's kernels packed as a plan without a model. */
nori_status nori__plan_write_blocks(nori_session *s, const char *made_for, const char *path,
                                    nori__plan_head *head, nori_error *err);
/* The plan of a model whose layers go these ways (threads 0: their usual ones); as nori_plan_write. */
nori_status nori__plan_write_with(const nori_model *model, const nori_session_options *options,
                                  const nori__ways *ways, const char *path, nori_plan_info *info,
                                  nori_error *err);
/* When kernels are prepared: those blocks are read by the first run. */
void nori__plan_ready(const nori_session *s);

#endif
