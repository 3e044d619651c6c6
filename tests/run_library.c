/* run_library.c: runs models on libnori.so alone, whichever is linked: by what nori.h has for programs.
 *
 *     run_library MODEL LEVEL REPEATS RESULT
 *
 * Inputs are made up, the same each time; free dimensions are 1. RESULT gets the bytes of all outputs.
 * Standard output: the CPU milliseconds of the fastest run. Standard error and 1: what nori says. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nori/nori.h>

enum { MOST = 32 };

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Floats in [-1, 1) in no order; other numbers are 1, which is an index, a rate and a flag. */
static nori_tensor *made_up(const nori_value_info *info, nori_error *err)
{
    int64_t dims[NORI_MAX_RANK];
    nori_tensor *t = NULL;
    for (int d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] < 0 ? 1 : info->dims[d];
    }
    if (nori_tensor_create(NULL, info->type, info->rank, dims, &t, err) != NORI_OK) {
        return NULL;
    }
    uint32_t state = 12345;
    unsigned char *bytes = nori_tensor_data(t);
    size_t count = (size_t)nori_tensor_elements(t), each = count ? nori_tensor_bytes(t) / count : 0;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (info->type == NORI_FLOAT) {
            ((float *)(void *)bytes)[i] = (float)(state >> 8) / 8388608.0f - 1;
        } else {
            bytes[i * each] = 1;
        }
    }
    return t;
}

static int fail(const nori_error *err)
{
    fprintf(stderr, "%s\n%s\n", err->message, err->hint);
    return 1;
}

int main(int argc, char **argv)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_tensor *in[MOST] = {NULL}, *out[MOST] = {NULL};
    nori_session_options_default(&o);
    if (argc != 5) {
        fprintf(stderr, "usage: run_library MODEL LEVEL REPEATS RESULT\n");
        return 2;
    }
    o.level = atoi(argv[2]);
    o.threads = 1;
    if (nori_model_load(NULL, argv[1], NULL, &model, &err) != NORI_OK ||
        nori_session_create(model, &o, &session, &err) != NORI_OK) {
        return fail(&err);
    }
    size_t n_in = nori_model_input_count(model), n_out = nori_model_output_count(model);
    for (size_t i = 0; i < n_in && i < MOST; i++) {
        in[i] = made_up(nori_model_input(model, i), &err);
        if (!in[i]) {
            return fail(&err);
        }
    }
    double best = 1e30;
    for (int r = 0; r < atoi(argv[3]) && n_in <= MOST && n_out <= MOST; r++) {
        double start = cpu_ms();
        if (nori_session_run(session, (const nori_tensor *const *)in, n_in, out, n_out, &err) != NORI_OK) {
            return fail(&err);
        }
        double took = cpu_ms() - start;
        best = took < best ? took : best;
    }
    FILE *f = fopen(argv[4], "wb");
    size_t written = 0, wanted = 0;
    for (size_t i = 0; f && i < n_out; i++) {
        wanted += out[i] ? nori_tensor_bytes(out[i]) : 0;
        written += out[i] ? fwrite(nori_tensor_const_data(out[i]), 1, nori_tensor_bytes(out[i]), f) : 0;
    }
    if (!f || fclose(f) != 0 || written != wanted || wanted == 0) {
        fprintf(stderr, "%s cannot be written, or there is nothing to write\n", argv[4]);
        return 1;
    }
    printf("%.4f\n", best);
    for (size_t i = 0; i < MOST; i++) {
        nori_tensor_free(in[i]);
        nori_tensor_free(out[i]);
    }
    nori_session_free(session);
    nori_model_free(model);
    return 0;
}
