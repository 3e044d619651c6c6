/* cmd_split.c: a model in parts that run one after another, or the places where it can be cut. */
#include <stdlib.h>
#include <string.h>

#include "split_bytes.h"

#define MOST_PARTS 32

static const cli_option options[] = {
    {"--at", "VALUE[,VALUE..]", "what the part before hands over; repeated: a further boundary"},
    {"--first", "NODE[,NODE..]", "or: nodes of the first of two parts, by name or output"},
    {"--output", "FILE", "a part each, from first to last"},
    {"--list", NULL, "the places where it can be cut, with the bytes that would cross"},
    {"--most", "N", "with --list: cuts of at most N values (default 1, 0: all)"},
    SPLIT_BYTES_OPTIONS,
    CLI_DIM_OPTION, CLI_PROOF_OPTIONS, CLI_LOAD_OPTIONS, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

/* ---- the list ---- */

static void json_names(cli_json *j, const char *key, const char *const *names, size_t count)
{
    cli_json_array(j, key);
    for (size_t i = 0; i < count; i++) {
        cli_json_string(j, NULL, names[i]);
    }
    cli_json_end(j);
}

static void list_json(const cli_args *args, const nori_cuts *cuts)
{
    nori_cut c = {.size = sizeof(c)};
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "path", args->positional[0]);
    cli_json_array(&j, "cuts");
    for (size_t i = 0; nori_cuts_at(cuts, i, &c); i++) {
        cli_json_object(&j, NULL);
        cli_json_uint(&j, "nodes", c.nodes);
        json_names(&j, "values", c.values, c.value_count);
        json_names(&j, "inputs", c.inputs, c.input_count);
        cli_json_uint(&j, "bytes", c.bytes);
        cli_json_uint(&j, "input_bytes", c.input_bytes);
        cli_json_bool(&j, "known", c.known);
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

static void list_text(const cli_args *args, const nori_cuts *cuts)
{
    nori_cut c = {.size = sizeof(c)};
    char bytes[32];
    printf("%8s %12s  %s\n", "nodes", "bytes", "values");
    for (size_t i = 0; nori_cuts_at(cuts, i, &c); i++) {
        cli_bytes_text(c.bytes + c.input_bytes, bytes, sizeof(bytes));
        bool any = c.known || c.bytes + c.input_bytes > 0;
        printf("%8zu %11s%s  ", c.nodes, any ? bytes : "?", c.known ? " " : "+");
        for (size_t k = 0; k < c.value_count; k++) {
            printf("%s%s", k ? "," : "", c.values[k]);
        }
        for (size_t k = 0; k < c.input_count; k++) {
            printf("%s%s", k ? "," : "  and inputs ", c.inputs[k]);
        }
        printf("\n");
    }
    if (!args->quiet) {
        printf("\n%zu cuts%s; + means that some sizes are not known: --dim NAME=N fixes them\n",
               nori_cuts_count(cuts), cli_has(args, "--most") ? "" : " of one value (--most N for more)");
    }
}

static int list(cli_args *args, const nori_model *model, const change_dims *dims, long most)
{
    nori_cuts_options o;
    nori_cuts *cuts = NULL;
    nori_error err = {0};
    nori_cuts_options_default(&o);
    o.dim_names = dims->names;
    o.dim_values = dims->values;
    o.dim_count = dims->count;
    o.most_values = (size_t)most;
    if (nori_cuts_find(model, &o, &cuts, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (args->json) {
        list_json(args, cuts);
    } else {
        list_text(args, cuts);
    }
    nori_cuts_free(cuts);
    return EXIT_YES;
}

/* ---- cutting ---- */

static void print(const cli_args *args, const nori_split_report *r, const split_bytes *b)
{
    nori_split_part p = {.size = sizeof(p)};
    nori_proof proof = {.size = sizeof(proof)};
    char bytes[32];
    for (size_t i = 0; nori_split_report_part(r, i, &p); i++) {
        printf("part %-6zu %zu nodes", i + 1, p.nodes);
        if (p.value_count > 0) {
            cli_bytes_text(p.bytes, bytes, sizeof(bytes));
            printf(", hands over %zu value%s of %s:", p.value_count, p.value_count == 1 ? "" : "s", bytes);
            for (size_t k = 0; k < p.value_count; k++) {
                printf("%s %s", k ? "," : "", p.values[k]);
            }
        }
        printf("\n            -> %s\n", cli_nth(args, "--output", (int)i));
    }
    nori_split_report_proof(r, &proof);
    change_print_proof(&proof);
    split_bytes_print(b);
}

static void print_json(const cli_args *args, const nori_split_report *r, const split_bytes *b)
{
    nori_split_part p = {.size = sizeof(p)};
    nori_proof proof = {.size = sizeof(proof)};
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_array(&j, "parts");
    for (size_t i = 0; nori_split_report_part(r, i, &p); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "output", cli_nth(args, "--output", (int)i));
        cli_json_uint(&j, "nodes", p.nodes);
        cli_json_array(&j, "values");
        for (size_t k = 0; k < p.value_count; k++) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "name", p.values[k]);
            cli_json_uint(&j, "bytes", p.value_bytes[k]);
            cli_json_end(&j);
        }
        cli_json_end(&j);
        cli_json_uint(&j, "bytes", p.bytes);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    nori_split_report_proof(r, &proof);
    change_json_proof(&j, &proof);
    split_bytes_json(b, &j);
    cli_json_finish(&j);
}

static int cut(cli_args *args, const nori_model *model, nori_split_options *o, size_t parts)
{
    nori_model *models[MOST_PARTS] = {NULL};
    nori_split_report *report = NULL;
    split_bytes bytes = {0};
    nori_error err = {0};
    nori_status s = nori_split(model, o, models, &report, &err);
    cli_progress_done(args);
    int code = s == NORI_OK ? EXIT_YES : cli_fail(args, &err);
    if (code == EXIT_YES && cli_has(args, "--byte-features")) {
        code = split_bytes_make(args, model, &o->proof, models, parts, &bytes);
    }
    for (size_t i = 0; code == EXIT_YES && i < parts; i++) {
        code = change_save(args, models[i], cli_nth(args, "--output", (int)i), NULL);
    }
    if (code == EXIT_YES && args->json) {
        print_json(args, report, &bytes);
    } else if (code == EXIT_YES && !args->quiet) {
        print(args, report, &bytes);
    }
    split_bytes_free(&bytes);
    nori_split_report_free(report);
    for (size_t i = 0; i < parts; i++) {
        nori_model_free(models[i]);
    }
    return code;
}

/* Reads the boundaries; the lists are freed by the caller. */
static bool read_at(const cli_args *args, change_names *lists, nori_split_at *at, size_t *count)
{
    const char *spec;
    for (*count = 0; (spec = cli_nth(args, "--at", (int)*count)) != NULL; (*count)++) {
        if (*count == MOST_PARTS - 1) {
            cli_usage(args, "more than %d parts", MOST_PARTS);
            return false;
        }
        if (!change_split_names(args, spec, &lists[*count])) {
            return false;
        }
        at[*count] = (nori_split_at){lists[*count].items, lists[*count].count};
    }
    return true;
}

static int check(const cli_args *args, size_t parts)
{
    size_t files = 0;
    while (cli_nth(args, "--output", (int)files)) {
        files++;
    }
    if (!split_bytes_check(args)) {
        return EXIT_USAGE;
    }
    if (cli_has(args, "--list")) {
        return parts > 0 || files > 0 || cli_has(args, "--byte-features")
                   ? cli_usage(args, "--list looks only: leave --at, --first, --output and --byte-features "
                                     "out")
                   : EXIT_YES;
    }
    if (parts == 0) {
        return cli_usage(args, "--at VALUE, --first NODES or --list was expected");
    }
    if (files != parts) {
        return cli_usage(args, "%zu parts need %zu times --output FILE, %zu %s given", parts, parts, files,
                         files == 1 ? "was" : "were");
    }
    return EXIT_YES;
}

static int run(cli_args *args)
{
    static change_dims dims;
    change_names lists[MOST_PARTS] = {{0}}, first = {0};
    nori_split_at at[MOST_PARTS];
    nori_split_options o;
    nori_model *model = NULL;
    long most;
    nori_split_options_default(&o);
    if (args->count != 1) {
        return cli_usage(args, "one model file was expected");
    }
    if (cli_has(args, "--at") && cli_has(args, "--first")) {
        return cli_usage(args, "--at VALUE or --first NODES, not both");
    }
    bool ok = cli_number(args, "--most", 0, 1000000, 1, &most) &&
              change_proof_options(args, &dims, &o.proof) && read_at(args, lists, at, &o.at_count) &&
              change_names_of(args, "--first", &first);
    o.at = at;
    o.first = first.items;
    o.first_count = first.count;
    size_t parts = first.count > 0 ? 2 : o.at_count ? o.at_count + 1 : 0;
    int code = ok ? check(args, parts) : EXIT_USAGE;
    code = code == EXIT_YES ? cli_load(args, &model) : code;
    if (code == EXIT_YES) {
        code = cli_has(args, "--list") ? list(args, model, &dims, most) : cut(args, model, &o, parts);
    }
    for (size_t i = 0; i < MOST_PARTS; i++) {
        change_free_names(&lists[i]);
    }
    change_free_names(&first);
    nori_model_free(model);
    return code;
}

const cli_verb cli_split = {
    "split", "change", "MODEL --at VALUE --output FILE --output FILE",
    "cut a model into parts that give the same one after another", options, run,
    "  nori split model.onnx --list\n"
    "  nori split model.onnx --at pool1 --output head.onnx --output tail.onnx\n"
    "  nori split model.onnx --at pool1 --byte-features --data pictures/ --output head.onnx --output "
    "tail.onnx\n"
    "  nori split model.onnx --at a,b --at c --output 1.onnx --output 2.onnx --output 3.onnx\n"};
