/* cmd_caps.c: operators by version, type and provider, as built. */
#include <string.h>

#include "cli.h"

static const cli_option options[] = {
    {"--op", "NAME", "only this operator"},
    {"--provider", "NAME", "only what this provider has kernels for"},
    {"--missing", NULL, "only what nothing runs"},
    CLI_OPS_OPTION,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

#define TYPES_SIZE 512

typedef struct listing {
    cli_args *args;
    const char *op, *provider;
    bool missing;
    cli_json *json; /* or NULL */
    int shown, all, have;
} listing;

static void json_types(cli_json *j, const char *key, const char *types)
{
    cli_json_array(j, key);
    while (*types) {
        size_t n = strcspn(types, ",");
        cli_json_bytes(j, NULL, types, n);
        types += n + (types[n] == ',');
    }
    cli_json_end(j);
}

/* A provider that is asked about each model as a whole says nothing here. */
static bool asked_here(const nori_provider *p)
{
    return !p->claim && !p->claim_model;
}

/* Of a library of operators (--ops-library): its own kernel runs it. */
static bool is_custom(const nori_capability *c)
{
    return strcmp(c->kernel, "custom") == 0;
}

static void json_row(const listing *l, size_t index, const nori_capability *c)
{
    char types[TYPES_SIZE];
    const nori_provider *p;
    cli_json_object(l->json, NULL);
    cli_json_string(l->json, "domain", c->domain);
    cli_json_string(l->json, "op", c->op);
    cli_json_int(l->json, "since", c->since);
    cli_json_string(l->json, "family", c->family);
    json_types(l->json, "types", c->types);
    cli_json_object(l->json, "providers");
    for (size_t k = 0; (p = nori_provider_at(k)) != NULL; k++) {
        nori_capability_types(index, p, types, sizeof(types));
        if (asked_here(p)) {
            json_types(l->json, p->name, types);
        }
    }
    if (is_custom(c)) {
        json_types(l->json, "custom", c->types);
    }
    cli_json_end(l->json);
    cli_json_end(l->json);
}

static void print_line(const nori_capability *c, const char *provider, const char *types)
{
    static bool headed;
    if (!headed) {
        printf("%-16s %-34s %5s  %-10s %s\n", "domain", "operator", "since", "provider", "types");
        headed = true;
    }
    printf("%-16s %-34s %5d  %-10s %s\n", c->domain[0] ? c->domain : "ai.onnx", c->op, c->since,
           provider, types);
}

/* A line for each provider that has a kernel, so that each can be searched for. */
static void print_rows(const listing *l, size_t index, const nori_capability *c)
{
    char types[TYPES_SIZE];
    const nori_provider *p;
    if (!c->kernel[0] || is_custom(c)) {
        print_line(c, is_custom(c) ? "custom" : "-", c->types);
    }
    for (size_t k = 0; (p = nori_provider_at(k)) != NULL; k++) {
        nori_capability_types(index, p, types, sizeof(types));
        bool runs = types[0] || (!is_custom(c) && strcmp(p->name, "reference") == 0 && c->kernel[0]);
        if (runs && (!l->provider || strcmp(l->provider, p->name) == 0)) {
            print_line(c, p->name, types[0] ? types : "(no tensors)");
        }
    }
}

static bool wanted(const listing *l, size_t index, const nori_capability *c)
{
    char types[TYPES_SIZE] = "";
    const nori_provider *p;
    for (size_t k = 0; l->provider && (p = nori_provider_at(k)) != NULL; k++) {
        if (strcmp(p->name, l->provider) == 0) {
            nori_capability_types(index, p, types, sizeof(types));
        }
    }
    return (!l->op || strcmp(l->op, c->op) == 0) && (!l->missing || !c->kernel[0]) &&
           (!l->provider || types[0]);
}

static const char *operator_at(const void *user, size_t i)
{
    static nori_capability c;
    (void)user;
    c.size = sizeof(c);
    return nori_capability_at(i, &c) ? c.op : NULL;
}

/* Names are looked for once more when nothing was found: near ones may be meant. */
static int none_found(const listing *l)
{
    const char *near = cli_near(l->op, strlen(l->op), operator_at, NULL);
    const char *known;
    for (size_t i = 0; (known = operator_at(NULL, i)) != NULL; i++) {
        if (strcmp(known, l->op) == 0) {
            return EXIT_NO; /* it is there, but not of that kind */
        }
    }
    fprintf(stderr, "nori caps: no operator is named \"%s\"", l->op);
    fprintf(stderr, near ? "; did you mean " : "");
    fprintf(stderr, "%s%s\n", near ? near : "", near ? "?" : "");
    return EXIT_NO;
}

static int check_provider(const cli_args *args, const char *name)
{
    const nori_provider *p;
    for (size_t k = 0; name && (p = nori_provider_at(k)) != NULL; k++) {
        if (strcmp(p->name, name) == 0) {
            return asked_here(p) ? EXIT_YES
                                 : cli_usage(args, "provider %s takes parts of models: `nori "
                                                   "inspect MODEL --providers %s` says which",
                                             name, name);
        }
    }
    return !name ? EXIT_YES
                 : cli_fail_text(args, NORI_ERROR_UNAVAILABLE,
                                 "there is no provider \"%s\"; `nori doctor` lists them", name);
}

static int run(cli_args *args)
{
    nori_capability c = {.size = sizeof(c)};
    cli_json j;
    listing l = {.args = args, .op = cli_value(args, "--op"),
                 .provider = cli_value(args, "--provider"),
                 .missing = cli_has(args, "--missing"), .json = args->json ? &j : NULL};
    if (args->count > 0) {
        return cli_usage(args, "no arguments were expected; --op NAME asks for one operator");
    }
    int code = check_provider(args, l.provider);
    code = code == EXIT_YES ? cli_load_ops(args, NULL) : code;
    if (code != EXIT_YES) {
        return code;
    }
    if (l.json) {
        cli_json_begin_array(&j, stdout);
    }
    for (size_t i = 0; nori_capability_at(i, &c); i++) {
        l.all++;
        l.have += c.kernel[0] != 0;
        if (!wanted(&l, i, &c)) {
            continue;
        }
        l.shown++;
        if (l.json) {
            json_row(&l, i, &c);
        } else {
            print_rows(&l, i, &c);
        }
    }
    if (l.json) {
        cli_json_finish(&j);
    } else if (!args->quiet && !l.op && !l.provider) {
        printf("%s%d of %d (operator, version) pairs have a kernel\n", l.shown ? "\n" : "", l.have,
               l.all);
    }
    return l.op && l.shown == 0 ? none_found(&l) : EXIT_YES;
}

const cli_verb cli_caps = {"caps", "look", "[--op NAME] [--provider NAME] [--missing]",
                           "operators, versions and types this build runs, by provider", options,
                           run, "  nori caps --op Conv\n  nori caps --provider cpu\n"};
