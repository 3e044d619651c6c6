/* Plans: the same bits as from the model, with the blocks of the file; other options pack anew and say
 * so; cut and changed files are refused, or give numbers and nothing worse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "make_model.h"
#include "nori/compile.h"
#include "nori/sign.h"
#include "run/plan_file.h"
#include "text_model.h"

static char folder[] = "/tmp/nori-plan-XXXXXX";
static char path[64];

static const char *const models[] = {
    "x=f1,16,14,14; w=F32,16,3,3; b=F32; a=Conv x w b pads=[1,1,1,1]; r=Relu a; v=F32,1,3,3; "
    "d=Conv r v pads=[1,1,1,1] group=32; u=F20,32,1,1; y=Conv d u",
    "x=f1,16,6,6; w=F16,12,3,3; a=Conv x q; q=F16,16,1,1; y=ConvTranspose a w strides=[2,2]",
    "x=f1,4,15; w=F8,4,3; y=Conv x w",
    "x=f5,24; w=F24,40; a=MatMul x w; v=F40,8; c=F8; y=Gemm a v c",
    "x=f6,2,12; w=F1,64,12; r=F1,64,16; b=F1,128; y=LSTM x w r b hidden_size=16",
    "x=f6,2,12; w=F1,48,12; r=F1,48,16; y=GRU x w r hidden_size=16",
    "x=u1,16,9,9; s=F:0.05; z=U:120; w=S24,16,3,3; t=F:0.01; q=S:0; "
    "y.u=QLinearConv x s z w t q s z pads=[1,1,1,1]",
    "x=u1,24,9,9; s=F:0.05; z=U:120; w=S24,1,3,3; t=F:0.01; q=S:0; "
    "y.u=QLinearConv x s z w t q s z group=24",
    "x=u4,24; s=F:0.05; z=U:120; w=S24,16; t=F:0.01; q=S:0; y.u=QLinearMatMul x s z w t q s z",
};
#define MODELS (sizeof(models) / sizeof(models[0]))

static int setup(void **state)
{
    (void)state;
    int made = mkdtemp(folder) ? 0 : -1;
    snprintf(path, sizeof(path), "%s/m.plan", folder);
    return made;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* ---- making and running ---- */

static nori_model *load(const void *data, size_t size)
{
    nori_model *model = NULL;
    nori_error err = {0};
    nori_status s = nori_model_load_memory(NULL, data, size, NULL, NULL, &model, &err);
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    return model;
}

static nori__text bytes_of(text_model *t)
{
    nori__text bytes;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&t->m.model, &bytes, NULL), NORI_OK);
    return bytes;
}

static nori_tensor *run(const nori_model *model, text_model *t, int level, nori_plan_use *use)
{
    nori_session *s = NULL;
    nori_session_options o;
    nori_tensor *out = NULL;
    nori_error err = {0};
    nori_session_options_default(&o);
    o.level = level;
    o.threads = 1;
    nori_status status = nori_session_create(model, &o, &s, &err);
    if (status == NORI_OK) {
        status = nori_session_run(s, (const nori_tensor *const *)t->in, t->n_in, &out, 1, &err);
    }
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
    *use = (nori_plan_use){.size = sizeof(*use)};
    nori_session_plan(s, use);
    use->why_not = use->why_not && use->why_not[0] ? "some" : "";
    nori_session_free(s);
    return out;
}

static void assert_same(const nori_tensor *a, const nori_tensor *b)
{
    assert_int_equal(nori_tensor_bytes(a), nori_tensor_bytes(b));
    assert_memory_equal(nori_tensor_const_data(a), nori_tensor_const_data(b), nori_tensor_bytes(a));
}

static void write_plan(const nori_model *model)
{
    nori_error err = {0};
    nori_plan_info info = {.size = sizeof(info)};
    nori_status s = nori_plan_write(model, NULL, path, &info, &err);
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    assert_true(info.blocks > 0 && info.packed_bytes > 0 && info.model_bytes > 0);
}

/* The plan's bytes, aligned to pages and then shifted. */
static uint8_t *read_plan(size_t shift, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = aligned_alloc(4096, (*size + 2 * 4096) / 4096 * 4096);
    assert_non_null(data);
    assert_int_equal(fread(data + shift, 1, *size, f), *size);
    fclose(f);
    return data;
}

static void the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        text_model t;
        nori_plan_use use;
        nori_model *plan = NULL;
        nori_error err = {0};
        text_begin(&t, models[i], 13, false);
        nori__text bytes = bytes_of(&t);
        nori_model *model = load(bytes.data, bytes.size);
        nori_tensor *want = run(model, &t, 2, &use), *plain = run(model, &t, 0, &use), *got;
        write_plan(model);
        assert_int_equal(nori_model_load(NULL, path, NULL, &plan, &err), NORI_OK);
        size_t first, second;
        uint8_t *once = read_plan(0, &first);
        write_plan(model); /* the same bytes: nothing of what memory held before */
        uint8_t *twice = read_plan(0, &second);
        assert_int_equal(first, second);
        assert_memory_equal(once, twice, first);
        free(once);
        free(twice);
        got = run(plan, &t, 2, &use);
        if (use.found == 0 || use.packed > 0) {
            print_error("model %zu: %zu found, %zu packed\n", i, use.found, use.packed);
        }
        assert_true(use.found > 0 && use.packed == 0 && !use.why_not[0]);
        assert_same(got, want);
        nori_tensor_free(got);
        got = run(plan, &t, 0, &use); /* other options */
        assert_true(use.found == 0 && use.why_not[0]);
        assert_same(got, plain);
        nori_tensor_free(got);
        nori_model_free(plan);
        for (size_t shift = 0; shift <= 16; shift += 8) { /* 8, 16: blocks are not aligned */
            size_t size;
            uint8_t *data = read_plan(shift, &size);
            plan = load(data + shift, size);
            got = run(plan, &t, 2, &use);
            assert_true(shift % 64 == 0 ? use.found > 0 && use.packed == 0
                                        : use.found == 0 && use.packed > 0);
            assert_same(got, want);
            nori_tensor_free(got);
            nori_model_free(plan);
            free(data);
        }
        nori_tensor_free(want);
        nori_tensor_free(plain);
        nori_model_free(model);
        nori__text_free(&bytes);
        text_end(&t);
    }
}

/* A plan is a model: it is saved as one, without its blocks. */
static void saved_again(void **state)
{
    (void)state;
    text_model t;
    nori_plan_use use;
    nori_plan_info info = {.size = sizeof(info)};
    nori_model *plan = NULL;
    text_begin(&t, models[0], 13, false);
    nori__text bytes = bytes_of(&t);
    nori_model *model = load(bytes.data, bytes.size), *again = NULL;
    nori_tensor *want = run(model, &t, 2, &use);
    write_plan(model);
    assert_int_equal(nori_model_load(NULL, path, NULL, &plan, NULL), NORI_OK);
    assert_int_equal(nori_model_plan(plan, &info), 1);
    assert_non_null(strstr(info.made_for, "level 2"));
    assert_null(nori_model_external(plan, 0));
    write_plan(plan); /* its own plan again, over itself */
    assert_int_equal(nori_model_save(plan, path, NULL), NORI_OK);
    assert_int_equal(nori_model_load(NULL, path, NULL, &again, NULL), NORI_OK);
    assert_int_equal(nori_model_plan(again, &info), 0);
    nori_tensor *got = run(again, &t, 2, &use);
    assert_same(got, want);
    nori_tensor_free(got);
    nori_tensor_free(want);
    nori_model_free(again);
    nori_model_free(plan);
    nori_model_free(model);
    nori__text_free(&bytes);
    text_end(&t);
}

/* ---- files of enemies ---- */

static void small_plan(text_model *t, const char *text, uint8_t **data, size_t *size)
{
    text_begin(t, text, 13, false);
    nori__text bytes = bytes_of(t);
    nori_model *model = load(bytes.data, bytes.size);
    write_plan(model);
    *data = read_plan(0, size);
    nori_model_free(model);
    nori__text_free(&bytes);
}

static void assert_refused(const void *data, size_t size)
{
    nori_model *model = NULL;
    nori_error err = {0};
    nori_status s = nori_model_load_memory(NULL, data, size, NULL, NULL, &model, &err);
    assert_int_not_equal(s, NORI_OK);
    assert_true(err.message[0] && s != NORI_ERROR_INTERNAL);
}

static void cut_and_flipped(void **state)
{
    (void)state;
    text_model t;
    uint8_t *data;
    size_t size;
    nori__plan_head head;
    small_plan(&t, models[6], &data, &size);
    for (size_t n = 0; n < size; n++) {
        uint8_t *cut = malloc(n ? n : 1); /* what is read beyond it, sanitizers see */
        memcpy(cut, data, n);
        assert_refused(cut, n);
        free(cut);
    }
    memcpy(&head, data, sizeof(head));
    size_t checked = head.part[NORI__PLAN_TABLE].at + head.part[NORI__PLAN_TABLE].size;
    for (size_t i = 0; i < checked; i++) {
        bool rest = i >= head.part[NORI__PLAN_MODEL].at + head.part[NORI__PLAN_MODEL].size &&
                    i < head.part[NORI__PLAN_TABLE].at; /* what fills up to the table */
        data[i] ^= 1 << i % 8;
        if (!rest) {
            assert_refused(data, size);
        }
        data[i] ^= 1 << i % 8;
    }
    free(data);
    text_end(&t);
}

/* What a hash cannot hold off, as it is only against accident. */
static void seal_again(uint8_t *data)
{
    nori__plan_head head;
    nori__str part[NORI__PLAN_PART_COUNT];
    char hash[NORI__HASH_TEXT];
    memcpy(&head, data, sizeof(head));
    for (int i = 0; i < NORI__PLAN_PART_COUNT; i++) {
        part[i] = (nori__str){(const char *)data + head.part[i].at, (size_t)head.part[i].size};
    }
    nori__plan_hash(&head, part, hash);
    memcpy(data + offsetof(nori__plan_head, hash), hash, sizeof(head.hash));
}

static void any_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        text_model t;
        uint8_t *data;
        size_t size;
        nori__plan_head head;
        nori_plan_use use;
        small_plan(&t, models[i], &data, &size);
        memcpy(&head, data, sizeof(head));
        size_t at = (size_t)head.part[NORI__PLAN_BLOCKS].at;
        for (int fill = 0; fill < 3; fill++) {
            memset(data + at, fill == 0 ? 0xff : fill == 1 ? 0x7f : 0x01, size - at);
            nori_model *plan = load(data, size);
            nori_tensor_free(run(plan, &t, 2, &use));
            nori_model_free(plan);
        }
        free(data);
        text_end(&t);
    }
}

/* Tables that contradict their blocks are refused; entries of other kernels are not found. */
static void other_tables(void **state)
{
    (void)state;
    text_model t;
    uint8_t *data;
    size_t size;
    nori__plan_head head;
    nori__pack_entry e, was;
    nori_plan_use use;
    small_plan(&t, models[0], &data, &size);
    memcpy(&head, data, sizeof(head));
    uint8_t *table = data + head.part[NORI__PLAN_TABLE].at;
    memcpy(&was, table, sizeof(was));
    for (int kind = 0; kind < 5; kind++) {
        e = was;
        e.offset += kind == 0 ? 8 : kind == 1 ? (uint64_t)1 << 40 : 0;
        e.size = kind == 2 ? 0 : kind == 3 ? UINT64_MAX : e.size;
        e.index += kind == 4;
        memcpy(table, &e, sizeof(e));
        seal_again(data);
        assert_refused(data, size);
    }
    e = was;
    e.op ^= 1;
    memcpy(table, &e, sizeof(e));
    seal_again(data);
    nori_model *plan = load(data, size);
    nori_tensor_free(run(plan, &t, 2, &use));
    assert_true(use.packed == 1 && use.found > 0);
    nori_model_free(plan);
    free(data);
    text_end(&t);
}

static void other_build(void **state)
{
    (void)state;
    text_model t;
    uint8_t *data;
    size_t size;
    nori__plan_head head;
    nori_plan_use use;
    small_plan(&t, models[3], &data, &size);
    memcpy(&head, data, sizeof(head));
    data[head.part[NORI__PLAN_TEXT].at + strlen("nori 0.1.0 ")] ^= 1;
    seal_again(data);
    nori_model *plan = load(data, size);
    nori_tensor_free(run(plan, &t, 2, &use));
    assert_true(use.found == 0 && use.why_not[0]);
    nori_model_free(plan);
    free(data);
    text_end(&t);
}

static void refused_to_write(void **state)
{
    (void)state;
    nori_error err = {0};
    text_model t;
    text_begin(&t, models[3], 13, false);
    nori__text bytes = bytes_of(&t);
    nori_model *model = load(bytes.data, bytes.size);
    assert_int_equal(nori_plan_write(model, NULL, "/nowhere/at/all.plan", NULL, &err), NORI_ERROR_IO);
    err = (nori_error){0};
    assert_int_equal(nori_plan_write(model, NULL, "", NULL, &err), NORI_ERROR_ARGUMENT);
    model->source->sealed = true; /* as nori_model_load_sealed leaves it */
    err = (nori_error){0};
    assert_int_equal(nori_plan_write(model, NULL, path, NULL, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "sealed"));
    nori_model_free(model);
    nori__text_free(&bytes);
    text_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),   cmocka_unit_test(saved_again),
        cmocka_unit_test(cut_and_flipped), cmocka_unit_test(any_numbers),
        cmocka_unit_test(other_tables),    cmocka_unit_test(other_build),
        cmocka_unit_test(refused_to_write),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
