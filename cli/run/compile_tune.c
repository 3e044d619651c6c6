/* compile_tune.c: tuning for compile, and its tables. */
#include "compile_tune.h"

#include <stdlib.h>
#include <string.h>

const char *cli_tune_option_alone(const cli_args *args)
{
    static const cli_option options[] = {CLI_INPUT_OPTIONS,
                                         {"--seconds", NULL, NULL},
                                         {"--threads", NULL, NULL},
                                         CLI_END};
    for (const cli_option *o = options; !cli_has(args, "--tune") && o->name; o++) {
        if (cli_has(args, o->name)) {
            return o->name;
        }
    }
    return NULL;
}

typedef struct tune_inputs {
    nori_tensor **list;
    size_t count;
} tune_inputs;

/* Inputs of the runs, as other verbs make them: from a session that compiles nothing. */
static int make_inputs(cli_args *args, const nori_model *model, const nori_session_options *given,
                       tune_inputs *in)
{
    nori_session *s = NULL;
    nori_error err = {0};
    nori_session_options o = *given;
    o.split_only = 1;
    if (nori_session_create(model, &o, &s, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    in->count = nori_session_input_count(s);
    in->list = calloc(in->count + 1, sizeof(nori_tensor *));
    int code = in->list ? cli_inputs(args, s, args->positional + 1, args->count - 1, in->list)
                        : cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    nori_session_free(s);
    return code;
}

int cli_tune(cli_args *args, const nori_model *model, const nori_session_options *o, nori_tuning **tuning)
{
    nori_tune_options t;
    nori_error err = {0};
    tune_inputs in = {NULL, 0};
    long seconds;
    if (!cli_number(args, "--seconds", 1, 86400, 20, &seconds)) {
        return EXIT_USAGE;
    }
    int code = make_inputs(args, model, o, &in);
    if (code == EXIT_YES) {
        nori_tune_options_default(&t);
        t.inputs = (const nori_tensor *const *)in.list;
        t.input_count = in.count;
        t.seconds = (double)seconds;
        nori_status s = nori_tune(model, o, &t, tuning, &err);
        cli_progress_done(args);
        code = s == NORI_OK ? EXIT_YES : cli_fail(args, &err);
    }
    for (size_t i = 0; in.list && i < in.count; i++) {
        nori_tensor_free(in.list[i]);
    }
    free(in.list);
    return code;
}

static void print_layers(const nori_tuning *t)
{
    nori_tuned_layer l = {.size = sizeof(l)};
    int width[3] = {5, 5, 5};
    for (size_t i = 0; nori_tuning_layer(t, i, &l); i++) {
        width[0] = cli_widen(width[0], l.layer);
        width[1] = cli_widen(width[1], l.usual);
        width[2] = cli_widen(width[2], l.taken);
    }
    printf("%-*s  nodes  %-*s  %-*s  usual us  taken us   gain\n", width[0], "layer", width[1], "usual",
           width[2], "taken");
    for (size_t i = 0; nori_tuning_layer(t, i, &l); i++) {
        printf("%-*s  %5zu  %-*s  %-*s", width[0], l.layer, l.nodes, width[1], l.usual, width[2],
               strcmp(l.usual, l.taken) == 0 ? "" : l.taken);
        if (l.usual_us > 0) {
            printf("  %8.1f", l.usual_us);
        } else {
            printf("  %8s", "-");
        }
        if (strcmp(l.usual, l.taken) != 0) {
            printf("  %8.1f  %4.0f %%", l.taken_us, 100 * (l.usual_us / l.taken_us - 1));
        }
        putchar('\n');
    }
}

void cli_tune_print(const nori_tuning *t)
{
    nori_tune_report r = {.size = sizeof(r)};
    nori_tuning_report(t, &r);
    if (r.layers == 0) {
        printf("no layer of this model has several ways to go: there was nothing to measure\n");
        return;
    }
    print_layers(t);
    printf("%zu layer%s with a choice measured in %.1f s with %d thread%s", r.layers,
           r.layers == 1 ? "" : "s", r.seconds, r.threads, r.threads == 1 ? "" : "s");
    if (r.unmeasured > 0) {
        printf("; time was too short for all ways of %zu (--seconds)", r.unmeasured);
    }
    if (r.usual_ms <= 0) {
        printf("\nno layer gains by another way: all go their usual one\n");
        return;
    }
    printf("\na run takes %.3f ms the usual ways, %.3f ms tuned: %+.1f %% faster, give or take %.1f %%\n",
           r.usual_ms, r.tuned_ms, 100 * (r.gain - 1), 100 * r.noise);
    if (!r.faster) {
        printf("that is no more than noise: all layers go their usual way\n");
    }
}

void cli_tune_json(cli_json *j, const nori_tuning *t)
{
    nori_tune_report r = {.size = sizeof(r)};
    nori_tuned_layer l = {.size = sizeof(l)};
    nori_tuned_way w = {.size = sizeof(w)};
    nori_tuning_report(t, &r);
    cli_json_object(j, "tuning");
    cli_json_int(j, "threads", r.threads);
    cli_json_number(j, "seconds", r.seconds, 6);
    cli_json_uint(j, "changed", r.changed);
    cli_json_uint(j, "unmeasured", r.unmeasured);
    cli_json_number(j, "usual_ms", r.usual_ms, 6);
    cli_json_number(j, "tuned_ms", r.tuned_ms, 6);
    cli_json_number(j, "gain", r.gain, 6);
    cli_json_number(j, "noise", r.noise, 6);
    cli_json_bool(j, "faster", r.faster);
    cli_json_array(j, "layers");
    for (size_t i = 0; nori_tuning_layer(t, i, &l); i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "layer", l.layer);
        cli_json_string(j, "node", l.node);
        cli_json_uint(j, "nodes", l.nodes);
        cli_json_string(j, "usual", l.usual);
        cli_json_string(j, "taken", l.taken);
        cli_json_array(j, "ways");
        for (size_t k = 0; nori_tuning_way(t, i, k, &w); k++) {
            if (w.measured) {
                cli_json_object(j, NULL);
                cli_json_string(j, "way", w.way);
                cli_json_number(j, "usual_us", w.usual_us, 6);
                cli_json_number(j, "us", w.us, 6);
                cli_json_end(j);
            }
        }
        cli_json_end(j);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_end(j);
}
