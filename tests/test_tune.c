/* Ways of layers: each changes what a kernel does and not what it means; plans hold them, and refuse or
 * leave alone what is no way of their model; tuning measures them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "make_model.h"
#include "kernels/kernels.h"
#include "nori/compile.h"
#include "providers/cpu/ways.h"
#include "run/plan_file.h"
#include "text_model.h"

static char folder[] = "/tmp/nori-tune-XXXXXX";
static char path[64];
static nori_env *env;
static char warned[512];

/* Each kind of layer, and shapes at which its ways part. */
static const struct {
    const char *text;
    const char *kind;
    bool integers;
} models[] = {
    {"x=f1,32,20,20; w=F48,32,3,3; b=F48; y=Conv x w b pads=[1,1,1,1]", "conv", false},
    {"x=f1,40,7,7; w=F72,40,3,3; y=Conv x w pads=[1,1,1,1] strides=[2,2]", "conv", false},
    {"x=f2,64,9,9; w=F80,64,1,1; y=Conv x w", "conv", false},
    {"x=f1,32,5,5; w=F96,16,3,3; y=Conv x w pads=[1,1,1,1] group=2", "conv", false},
    {"x=f1,3,30,30; w=F24,3,3,3; y=Conv x w strides=[2,2]", "conv", false},
    {"x=f1,32,40,40; w=F32,1,5,5; b=F32; y=Conv x w b pads=[2,2,2,2] group=32", "depthwise", false},
    {"x=f1,16,40,40; w=F40,16,1,1; a=Conv x w; r=Relu a; v=F40,1,3,3; y=Conv r v group=40 strides=[2,2]",
     "expand", false},
    {"x=f1,3,70,70; w=F24,3,7,7; a=Conv x w strides=[2,2] pads=[3,3,3,3]; r=Relu a; "
     "y=MaxPool r kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", "stem", false},
    {"x=f9,520; w=F520,300; y=MatMul x w", "product", false},
    {"x=f2,3,512; w=F512,70; y=MatMul x w", "product", false},
    {"x=u1,16,19,19; s=F:0.05; z=U:120; w=S24,16,3,3; t=F:0.01; q=S:0; "
     "y.u=QLinearConv x s z w t q s z pads=[1,1,1,1]", "int8 conv", true},
    {"x=u1,6,9,9; s=F:0.05; z=U:120; w=S24,6,3,3; t=F:0.01; q=S:0; "
     "y.u=QLinearConv x s z w t q s z strides=[2,2]", "int8 conv", true},
};
#define MODELS (sizeof(models) / sizeof(models[0]))

static void note_warning(void *user, nori_log_level level, const char *text)
{
    (void)user;
    if (level == NORI_LOG_WARNING) {
        snprintf(warned, sizeof(warned), "%s", text);
    }
}

static int setup(void **state)
{
    (void)state;
    nori_env_options o;
    nori_env_options_default(&o);
    o.threads = 3;
    o.log = note_warning;
    if (!mkdtemp(folder) || nori_env_create(&o, &env, NULL) != NORI_OK) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/m.plan", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    nori_env_free(env);
    unlink(path);
    return rmdir(folder);
}

static void must(nori_status s, const nori_error *err)
{
    if (s != NORI_OK) {
        print_error("%s: %s\n", err->where, err->message);
    }
    assert_int_equal(s, NORI_OK);
}

/* ---- models, sessions, results ---- */

typedef struct sample {
    text_model t;
    nori__text bytes;
    nori_model *model;
} sample;

static void begin(sample *s, const char *text)
{
    nori_error err = {0};
    text_begin(&s->t, text, 13, false);
    nori__text_init(&s->bytes, &nori__malloc);
    must(nori__pb_write_model(&s->t.m.model, &s->bytes, NULL), &err);
    must(nori_model_load_memory(env, s->bytes.data, s->bytes.size, NULL, NULL, &s->model, &err), &err);
}

static void end(sample *s)
{
    nori_model_free(s->model);
    nori__text_free(&s->bytes);
    text_end(&s->t);
}

static nori_session *session_of(const nori_model *model, int level, int threads)
{
    nori_session *s = NULL;
    nori_session_options o;
    nori_error err = {0};
    nori_session_options_default(&o);
    o.level = level;
    o.threads = threads;
    must(nori_session_create(model, &o, &s, &err), &err);
    return s;
}

static nori_tensor *result(nori_session *s, sample *of)
{
    nori_tensor *out = NULL;
    nori_error err = {0};
    must(nori_session_run(s, (const nori_tensor *const *)of->t.in, of->t.n_in, &out, 1, &err), &err);
    return out;
}

static nori_tensor *result_of(const nori_model *model, sample *of, int level, int threads)
{
    nori_session *s = session_of(model, level, threads);
    nori_tensor *out = result(s, of);
    nori_session_free(s);
    return out;
}

static void assert_same(const nori_tensor *a, const nori_tensor *b)
{
    assert_int_equal(nori_tensor_bytes(a), nori_tensor_bytes(b));
    assert_memory_equal(nori_tensor_const_data(a), nori_tensor_const_data(b), nori_tensor_bytes(a));
}

/* As a share of the largest output: bconv_winograd.c says what to expect. */
static void assert_close(const nori_tensor *got, const nori_tensor *want)
{
    const float *g = nori_tensor_const_data(got), *w = nori_tensor_const_data(want);
    size_t n = nori_tensor_bytes(want) / sizeof(float);
    float most = 0;
    assert_int_equal(nori_tensor_bytes(got), nori_tensor_bytes(want));
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(w[i]));
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(fabsf(g[i] - w[i]) <= 1e-5f * most);
    }
}

/* What the session that packs the model asks, and of whom. */
static nori__way_noted asked(const nori_model *model, const char *kind)
{
    static const nori__ways none = {NULL, 0, 0};
    nori_session *s = NULL;
    nori_session_options o;
    nori_error err = {0};
    const nori__way_noted *noted;
    nori__way_noted found = {.ask = {.fits = 0}};
    nori_session_options_default(&o);
    must(nori__session_make(model, &o, &none, &s, &err), &err);
    size_t n = nori__ways_noted(s->packs, &noted);
    for (size_t i = 0; i < n; i++) {
        found = strcmp(nori__ways_name(noted[i].ask.kind), kind) == 0 ? noted[i] : found;
    }
    nori_session_free(s);
    return found;
}

static void write_plan(const nori_model *model, const nori__way_entry *entries, size_t n, int threads)
{
    nori__ways ways = {entries, n, threads};
    nori_plan_info info = {.size = sizeof(info)};
    nori_error err = {0};
    must(nori__plan_write_with(model, NULL, &ways, path, &info, &err), &err);
    assert_true(info.tuned_layers == n && info.tuned_threads == threads);
}

static nori_model *load_plan(void)
{
    nori_model *plan = NULL;
    nori_error err = {0};
    must(nori_model_load(env, path, NULL, &plan, &err), &err);
    return plan;
}

/* ---- each way ---- */

static void check_way(sample *of, size_t model, const nori__way_noted *n, uint32_t way,
                      const nori_tensor *want)
{
    nori__way_entry e = n->taken;
    nori_tensor *first = NULL;
    nori_plan_info info = {.size = sizeof(info)};
    nori_tuned_layer layer = {.size = sizeof(layer)};
    e.way = way;
    write_plan(of->model, &e, 1, 2);
    nori_model *plan = load_plan();
    assert_true(nori_model_plan(plan, &info) && info.tuned_threads == 2 && info.tuned_layers == 1);
    char line[96];
    snprintf(line, sizeof(line), "1 node: %s %s\n", models[model].kind, nori__way_at(e.kind, way)->name);
    assert_string_equal(info.ways, line);
    for (int threads = 1; threads <= 3; threads++) {
        nori_plan_use use = {.size = sizeof(use)};
        nori_session *s = session_of(plan, 2, threads);
        assert_int_equal(nori_session_plan(s, &use), 1);
        assert_true(use.found > 0 && use.packed == 0 && !use.why_not[0]);
        bool listed = false;
        for (size_t i = 0; nori_session_layer(s, i, &layer); i++) {
            listed = listed || (strcmp(layer.taken, nori__way_at(e.kind, way)->name) == 0 &&
                                strstr(layer.layer, models[model].kind));
        }
        assert_true(listed);
        nori_tensor *got = result(s, of);
        if (models[model].integers) {
            assert_same(got, want);
        } else {
            assert_close(got, want);
        }
        if (first) {
            assert_same(got, first);
            nori_tensor_free(got);
        } else {
            first = got;
        }
        nori_session_free(s);
    }
    nori_tensor_free(first);
    nori_model_free(plan);
}

static void each_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        sample of;
        begin(&of, models[i].text);
        nori_tensor *want = result_of(of.model, &of, models[i].integers ? 2 : 0, 1);
        nori__way_noted n = asked(of.model, models[i].kind);
        size_t ways = 0;
        for (uint32_t way = 0; nori__way_at(n.ask.kind, way); way++) {
            if (n.ask.fits >> way & 1) {
                check_way(&of, i, &n, way, want);
                ways++;
            }
        }
        assert_true(ways > 1);
        nori_tensor_free(want);
        end(&of);
    }
}

/* Winograd's form has other weights than direct sums: that it is gone shows in what is packed. */
static void the_way_is_gone(void **state)
{
    (void)state;
    sample of;
    uint64_t bytes[2];
    begin(&of, models[0].text);
    nori__way_noted n = asked(of.model, "conv");
    for (uint32_t i = 0; i < 2; i++) {
        nori_memory_stats stats = {.size = sizeof(stats)};
        nori__way_entry e = n.taken;
        for (e.way = 0; strcmp(nori__way_at(e.kind, e.way)->name, i ? "winograd" : "direct") != 0;) {
            e.way++;
        }
        write_plan(of.model, &e, 1, 1);
        nori_model *plan = load_plan();
        nori_session *s = session_of(plan, 2, 1);
        nori_session_memory(s, &stats);
        bytes[i] = stats.packed_bytes;
        nori_session_free(s);
        nori_model_free(plan);
    }
    assert_true(bytes[1] > 3 * bytes[0]);
    end(&of);
}

/* What the rules take without being told: Winograd's form where it can be gone and its products are worth its
 * weights, on every level. */
static void rules(void **state)
{
    (void)state;
    static const struct {
        int64_t channels, made, size, kernel, stride, group, joined;
        const char *way;
    } rows[] = {
        {64, 64, 56, 3, 1, 1, 0, "winograd"},
        {64, 64, -1, 3, 1, 1, 0, "winograd"},
        {256, 256, 14, 3, 1, 1, 0, "winograd"},
        {128, 128, 11, 3, 1, 1, 0, "winograd"},
        {8, 8, 4, 3, 1, 1, 0, "direct"},
        {512, 512, 2, 3, 1, 1, 0, "direct"},
        {64, 64, 56, 3, 2, 1, 0, "direct"},
        {64, 64, 56, 5, 1, 1, 0, "direct"},
        {32, 64, 56, 3, 1, 2, 0, "direct"},
        {3, 64, 56, 3, 1, 1, 1, "direct"},
        {64, 64, 0, 3, 1, 1, 0, "direct"},
        {INT32_MAX, INT32_MAX, INT32_MAX, 3, 1, 1, 0, "winograd"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nori__layer l = {.batch = 1, .channels = rows[i].channels, .made = rows[i].made,
                         .group = rows[i].group, .kernel = {rows[i].kernel, rows[i].kernel},
                         .stride = {rows[i].stride, rows[i].stride}, .dilation = {1, 1},
                         .in = {rows[i].size, rows[i].size}, .out = {rows[i].size, rows[i].size},
                         .joined = rows[i].joined};
        const nori__way *way = nori__way_usual(NORI__WAYS_CONV, &l);
        assert_string_equal(way->name, rows[i].way);
    }
    /* Small maps: weights four times as large cost more than the products they save, if vectors are wide. */
    if (nori__kernels_get()->block == 16) {
        for (int64_t channels = 128; channels <= 256; channels += 128) {
            nori__layer l = {.batch = 1, .channels = channels, .made = channels, .group = 1, .kernel = {3, 3},
                             .stride = {1, 1}, .dilation = {1, 1}, .in = {7, 7}, .out = {7, 7}};
            assert_string_equal(nori__way_usual(NORI__WAYS_CONV, &l)->name, "winograd, small tiles");
        }
    }
}

/* ---- files of enemies, and of other models ---- */

static uint8_t *read_plan(size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = aligned_alloc(4096, (*size / 4096 + 1) * 4096);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

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

static void hostile_lists(void **state)
{
    (void)state;
    sample of;
    size_t size;
    nori__plan_head head;
    begin(&of, models[0].text);
    nori__way_noted n = asked(of.model, "conv");
    nori__way_entry list[2] = {n.taken, n.taken}, was[2];
    list[1].step++;
    write_plan(of.model, list, 2, 1);
    uint8_t *data = read_plan(&size);
    memcpy(&head, data, sizeof(head));
    uint8_t *ways = data + head.part[NORI__PLAN_WAYS].at;
    assert_int_equal(head.part[NORI__PLAN_WAYS].size, 8 + sizeof(list));
    memcpy(was, ways + 8, sizeof(was));
    for (int kind = 0; kind < 6; kind++) {
        nori__way_entry now[2] = {was[0], was[1]};
        uint32_t threads[2] = {kind == 3 ? 0 : kind == 4 ? UINT32_MAX : 1, kind == 5};
        now[0].way = kind == 0 ? NORI__WAYS_MOST : kind == 1 ? UINT32_MAX : now[0].way;
        now[1].step = kind == 2 ? now[0].step : now[1].step;
        memcpy(ways, threads, sizeof(threads));
        memcpy(ways + 8, now, sizeof(now));
        seal_again(data);
        nori_model *model = NULL;
        nori_error err = {0};
        assert_int_not_equal(nori_model_load_memory(env, data, size, NULL, NULL, &model, &err), NORI_OK);
        assert_non_null(strstr(err.message, "list of ways"));
    }
    free(data);
    end(&of);
}

/* A way that is none for its layer: the usual one is gone, and it is said. */
static void ways_that_do_not_fit(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        sample of;
        size_t size;
        nori__plan_head head;
        nori_tuned_layer layer = {.size = sizeof(layer)};
        nori_error err = {0};
        nori_model *plan = NULL;
        begin(&of, models[1].text); /* stride 2: no Winograd */
        nori_tensor *want = result_of(of.model, &of, 2, 1);
        nori__way_noted n = asked(of.model, "conv");
        nori__way_entry e = n.taken;
        write_plan(of.model, &e, 1, 1);
        uint8_t *data = read_plan(&size);
        memcpy(&head, data, sizeof(head));
        e.way = kind == 0 ? 31 : kind == 1 ? 5 : 1;
        e.kind = kind == 2 ? NORI__WAYS_PRODUCT : e.kind;
        e.op ^= kind == 3;
        memcpy(data + head.part[NORI__PLAN_WAYS].at + 8, &e, sizeof(e));
        seal_again(data);
        must(nori_model_load_memory(env, data, size, NULL, NULL, &plan, &err), &err);
        warned[0] = 0;
        nori_session *s = session_of(plan, 2, 1);
        assert_non_null(strstr(warned, "1 of its 1 tuned layers"));
        assert_int_equal(nori_session_layer(s, 0, &layer), 1);
        assert_string_equal(layer.taken, layer.usual);
        nori_tensor *got = result(s, &of);
        assert_same(got, want);
        nori_tensor_free(got);
        nori_tensor_free(want);
        nori_session_free(s);
        nori_model_free(plan);
        free(data);
        end(&of);
    }
}

/* ---- measuring ---- */

static void tuning(void **state)
{
    (void)state;
    sample of;
    nori_tune_options o;
    nori_tuning *t = NULL;
    nori_error err = {0};
    nori_tune_report r = {.size = sizeof(r)};
    nori_tuned_layer layer = {.size = sizeof(layer)};
    nori_tuned_way way = {.size = sizeof(way)};
    nori_plan_info info = {.size = sizeof(info)};
    begin(&of, "x=f1,32,20,20; w=F32,32,3,3; a=Conv x w pads=[1,1,1,1]; b=Conv a w pads=[1,1,1,1]; "
               "y=Conv b w pads=[1,1,1,1]");
    nori_tune_options_default(&o);
    o.inputs = (const nori_tensor *const *)of.t.in;
    o.input_count = of.t.n_in;
    o.seconds = 0.5;
    o.least = 0;
    must(nori_tune(of.model, NULL, &o, &t, &err), &err);
    nori_tuning_report(t, &r);
    assert_int_equal(r.layers, 1);
    assert_int_equal(r.threads, 3);
    assert_int_equal(nori_tuning_layer(t, 0, &layer), 1);
    assert_int_equal(layer.nodes, 3);
    assert_string_equal(layer.layer, "conv 3x3, 32 -> 32, 20x20");
    assert_true(layer.usual_us > 0 && layer.taken_us > 0);
    size_t measured = 0, ways = 0;
    for (; nori_tuning_way(t, 0, ways, &way); ways++) {
        assert_true(!way.measured || (way.us > 0 && way.usual_us > 0));
        measured += way.measured != 0;
    }
    assert_true(measured > 0 && (measured == ways) == (r.unmeasured == 0));
    assert_int_equal(nori_tuning_layer(t, 1, &layer), 0);
    assert_true(r.faster ? r.changed == 1 && r.gain > 1 + r.noise : r.changed == 0);
    must(nori_plan_write_tuned(of.model, NULL, t, path, &info, &err), &err);
    assert_int_equal(info.tuned_threads, 3);
    assert_int_equal(info.tuned_layers, 3 * r.changed);
    nori_model *plan = load_plan();
    nori_session *s = session_of(plan, 2, 1);
    nori_tuned_layer now = {.size = sizeof(now)};
    nori_tuning_layer(t, 0, &layer);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nori_session_layer(s, i, &now), 1);
        assert_string_equal(now.taken, layer.taken);
    }
    assert_int_equal(nori_session_layer(s, 3, &now), 0);
    nori_session_free(s);
    nori_model_free(plan);
    nori_tuning_free(t);
    for (int kind = 0; kind < 5; kind++) { /* what cannot be */
        nori_tune_options bad = o;
        bad.seconds = kind == 0 ? 0 : kind == 1 ? (double)NAN : 1;
        bad.least = kind == 2 ? -1 : 0;
        bad.inputs = kind == 3 ? NULL : o.inputs;
        bad.input_count = kind == 4 ? 0 : o.input_count;
        err = (nori_error){0};
        t = NULL;
        assert_int_not_equal(nori_tune(of.model, NULL, &bad, &t, &err), NORI_OK);
        assert_true(!t && err.message[0]);
    }
    end(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way),      cmocka_unit_test(the_way_is_gone), cmocka_unit_test(rules),
        cmocka_unit_test(hostile_lists), cmocka_unit_test(ways_that_do_not_fit),
        cmocka_unit_test(tuning),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
