/* driver.c: runs many one-node models through ONNX Runtime and through nori's providers in one
 * process and says how far apart the results are. differential.py writes the cases and reads what
 * this prints; nothing here knows operators.
 *
 *     driver LIBONNXRUNTIME LIST [FIRST]
 *
 * A line of LIST is FOLDER<tab>ATOL<tab>RTOL; the folder holds model.onnx and input_N.pb (a map's
 * keys and values: input_N.0.pb, input_N.1.pb; a sequence's items the same way). A negative ATOL
 * asks for the same bits. Lines written, tab-separated: "case N"; "ort ran|refused|failed TEXT";
 * "nori PROVIDER:LEVEL ran|failed TEXT"; "differs PROVIDER:LEVEL OUTPUT TEXT GOT WANT"; "end N". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "graph/tensor.h"
#include "nori/tools.h"
#include "ort.h"

enum { SHOWN = 40 };

static const struct config {
    const char *provider;
    int level;
} configs[] = {{"reference", 0}, {"reference", 2}, {"cpu", 0}, {"cpu", 2}};
enum { CONFIGS = sizeof(configs) / sizeof(configs[0]) };

typedef struct one_case {
    char folder[4096];
    double atol, rtol;
    const char *in_names[ORT_MAX_VALUES], *out_names[ORT_MAX_VALUES];
    nori_tensor *in[ORT_MAX_VALUES], *want[ORT_MAX_VALUES], *got[ORT_MAX_VALUES];
    size_t n_in, n_out;
} one_case;

/* Text without what would break a line or a column. */
static void print_flat(const char *s)
{
    for (; *s; s++) {
        putchar(*s == '\n' || *s == '\t' || *s == '\r' ? ' ' : *s);
    }
}

/* ---- showing values ---- */

static void show(const nori_tensor *t)
{
    if (!t) {
        fputs("nothing", stdout);
        return;
    }
    if (nori_tensor_kind(t) != NORI_KIND_TENSOR) {
        printf("kind %d{", (int)nori_tensor_kind(t));
        for (size_t i = 0; i < nori_tensor_item_count(t) && i < 4; i++) {
            fputs(i ? "; " : "", stdout);
            show(nori_tensor_item(t, i)); /* ONNX nests three deep at most */
        }
        fputs("}", stdout);
        return;
    }
    printf("%s[", nori_type_name(nori_tensor_type(t)));
    for (int i = 0; i < nori_tensor_rank(t); i++) {
        printf("%s%" PRId64, i ? "," : "", nori_tensor_dims(t)[i]);
    }
    fputs("]", stdout);
    for (int64_t i = 0; i < nori_tensor_elements(t) && i < SHOWN; i++) {
        if (nori_tensor_type(t) == NORI_STRING) {
            const nori_string *s = (const nori_string *)nori_tensor_const_data(t) + i;
            printf(" '%.*s'", (int)s->size, s->size ? s->data : "");
        } else if (nori_tensor_type(t) == NORI_INT64 || nori_tensor_type(t) == NORI_UINT64) {
            printf(" %" PRId64, ((const int64_t *)nori_tensor_const_data(t))[i]);
        } else {
            printf(" %.9g", nori__tensor_get_f64(t, i));
        }
    }
    fputs(nori_tensor_elements(t) > SHOWN ? " ..." : "", stdout);
}

/* ---- comparing ---- */

static bool same_bits(const nori_tensor *a, const nori_tensor *b)
{
    return nori_tensor_kind(a) == NORI_KIND_TENSOR && nori_tensor_type(a) != NORI_STRING &&
           nori_tensor_bytes(a) == nori_tensor_bytes(b) &&
           (nori_tensor_bytes(a) == 0 || memcmp(nori_tensor_const_data(a),
                                                nori_tensor_const_data(b),
                                                nori_tensor_bytes(a)) == 0);
}

static void compare(const one_case *c, const char *label)
{
    for (size_t i = 0; i < c->n_out; i++) {
        const nori_tensor *got = c->got[i], *want = c->want[i];
        if (!got || !want) {
            printf("differs\t%s\t%zu\tno value\t-\t-\n", label, i);
            continue;
        }
        /* An optional that holds something comes back from ONNX Runtime as what it holds. */
        if (nori_tensor_kind(got) == NORI_KIND_OPTIONAL && nori_tensor_item_count(got) == 1 &&
            nori_tensor_kind(want) != NORI_KIND_OPTIONAL) {
            got = nori_tensor_item(got, 0);
        }
        nori_difference d = {.size = sizeof d};
        bool bits = c->atol < 0;
        nori_tensor_compare(got, want, bits ? 0 : c->atol, bits ? 0 : c->rtol, &d);
        if (d.passes && bits && nori_tensor_kind(got) == NORI_KIND_TENSOR &&
            nori_tensor_type(got) != NORI_STRING && !same_bits(got, want)) {
            d.passes = 0;
            snprintf(d.reason, sizeof d.reason, "equal values, other bits");
        }
        if (d.passes) {
            continue;
        }
        printf("differs\t%s\t%zu\t", label, i);
        print_flat(d.reason);
        printf(" %" PRIu64 " of %" PRIu64 " beyond, worst [%" PRIu64 "] %.9g, not %.9g\t", d.beyond,
               d.elements, d.worst, d.worst_got, d.worst_want);
        show(got);
        putchar('\t');
        show(want);
        putchar('\n');
    }
}

/* ---- one case ---- */

static void free_values(nori_tensor **values)
{
    for (size_t i = 0; i < ORT_MAX_VALUES; i++) {
        nori_tensor_free(values[i]);
        values[i] = NULL;
    }
}

/* Input N from its file, or from the files of its items. */
static bool read_input(one_case *c, size_t n, nori_kind kind)
{
    char path[4200];
    nori_tensor *items[ORT_MAX_VALUES] = {NULL};
    size_t count = 0;
    bool fine = true;
    snprintf(path, sizeof path, "%s/input_%zu.pb", c->folder, n);
    if (kind == NORI_KIND_TENSOR) {
        return nori_tensor_read(NULL, path, &c->in[n], NULL) == NORI_OK;
    }
    for (; count < ORT_MAX_VALUES; count++) {
        snprintf(path, sizeof path, "%s/input_%zu.%zu.pb", c->folder, n, count);
        FILE *f = fopen(path, "rb");
        if (!f) {
            break;
        }
        fclose(f);
        fine = fine && nori_tensor_read(NULL, path, &items[count], NULL) == NORI_OK;
    }
    fine = fine && nori_tensor_group(NULL, kind, items, count, 0, NULL, &c->in[n], NULL) == NORI_OK;
    for (size_t i = 0; i < count; i++) {
        nori_tensor_free(items[i]);
    }
    return fine;
}

static bool describe(one_case *c, const nori_model *model)
{
    c->n_in = nori_model_input_count(model);
    c->n_out = nori_model_output_count(model);
    if (c->n_in > ORT_MAX_VALUES || c->n_out > ORT_MAX_VALUES) {
        return false;
    }
    for (size_t i = 0; i < c->n_in; i++) {
        c->in_names[i] = nori_model_input(model, i)->name;
        if (!read_input(c, i, nori_model_input(model, i)->kind)) {
            return false;
        }
    }
    for (size_t i = 0; i < c->n_out; i++) {
        c->out_names[i] = nori_model_output(model, i)->name;
    }
    return true;
}

static bool run_nori(one_case *c, const nori_model *model, const struct config *config,
                     const char *label)
{
    nori_session_options options;
    nori_session *session = NULL;
    nori_error err = {0};
    nori_session_options_default(&options);
    options.providers = config->provider;
    options.level = config->level;
    options.threads = 1;
    nori_status status = nori_session_create(model, &options, &session, &err);
    if (status == NORI_OK) {
        status = nori_session_run(session, (const nori_tensor *const *)c->in, c->n_in, c->got,
                                  c->n_out, &err);
    }
    printf("nori\t%s\t%s\t", label, status == NORI_OK ? "ran" : nori_status_text(status));
    print_flat(status == NORI_OK ? "" : err.message);
    putchar('\n');
    nori_session_free(session);
    return status == NORI_OK;
}

static void run_case(ort *o, one_case *c)
{
    char path[4200], text[1024] = "";
    nori_model *model = NULL;
    nori_error err = {0};
    snprintf(path, sizeof path, "%s/model.onnx", c->folder);
    if (nori_model_load(NULL, path, NULL, &model, &err) != NORI_OK || !describe(c, model)) {
        printf("broken\t");
        print_flat(err.message[0] ? err.message : "inputs cannot be read");
        printf("\n");
        nori_model_free(model);
        return;
    }
    ort_outcome outcome = ort_run(o, path, (const nori_tensor *const *)c->in, c->in_names, c->n_in,
                                  c->want, c->out_names, c->n_out, text, sizeof text);
    static const char *const words[] = {"ran", "refused", "failed"};
    printf("ort\t%s\t%s\n", words[outcome], outcome == ORT_RAN ? "" : text);
    fflush(stdout);
    bool have = outcome == ORT_RAN;
    for (size_t i = 0; i < CONFIGS; i++) {
        char label[64];
        snprintf(label, sizeof label, "%s:%d", configs[i].provider, configs[i].level);
        if (run_nori(c, model, &configs[i], label)) {
            if (have) {
                compare(c, label);
                free_values(c->got);
            } else { /* the first of ours is then what the others are held against */
                memcpy(c->want, c->got, sizeof c->want);
                memset(c->got, 0, sizeof c->got);
                have = true;
            }
        }
        free_values(c->got);
    }
    nori_model_free(model);
}

int main(int argc, char **argv)
{
    char reason[512] = "", line[8192];
    if (argc < 3) {
        fprintf(stderr, "usage: %s LIBONNXRUNTIME LIST [FIRST]\n", argv[0]);
        return 2;
    }
    ort *o = ort_open(argv[1], reason, sizeof reason);
    FILE *list = fopen(argv[2], "r");
    if (!o || !list) {
        fprintf(stderr, "%s: %s\n", argv[0], o ? "the list cannot be read" : reason);
        return 2;
    }
    printf("version\t%s\n", ort_version(o));
    long first = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    for (long n = 0; fgets(line, sizeof line, list); n++) {
        static one_case c;
        memset(&c, 0, sizeof c);
        char *tab = strchr(line, '\t'), *end = NULL;
        if (n < first || !tab) {
            continue;
        }
        snprintf(c.folder, sizeof c.folder, "%.*s", (int)(tab - line), line);
        c.atol = strtod(tab, &end);
        c.rtol = strtod(end, NULL);
        printf("case\t%ld\n", n);
        fflush(stdout);
        run_case(o, &c);
        printf("end\t%ld\n", n);
        free_values(c.in);
        free_values(c.want);
        free_values(c.got);
    }
    fclose(list);
    return 0;
}
