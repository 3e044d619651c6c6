/* main.c: the command table, help, options. A verb is a file cmd_<verb>.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const cli_verb *const verbs[] = {&cli_inspect, &cli_check, &cli_caps, &cli_doctor,
                                        &cli_run, &cli_bench};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static const cli_option common[] = {
    {"--help", NULL, "this text"},
    {"--json", NULL, "machine-readable output"},
    {"--quiet", NULL, "only the result and errors"},
    {"--threads", "N", "threads for one run (default: what the machine allows)"},
    {"--provider", "LIST", "execution providers, first choice first"},
    {"--fallback", NULL, "go on without a provider that cannot be had"},
    {"--dim", "NAME=N", "fix a named dimension; may be repeated"},
    {"--level", "0|1|2", "optimization: none, standard, provider's own (default 2)"},
    {"--strict", NULL, "unknown fields and newer IR versions are errors"},
    {"--allow-outside", NULL, "external data may lie outside the model's folder"},
    {NULL, NULL, NULL},
};

bool cli_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(f)) && !(no && no[0]);
}

static void overview(FILE *f)
{
    const char *bold = cli_colour(f) ? "\033[1m" : "", *plain = cli_colour(f) ? "\033[0m" : "";
    fprintf(f, "nori %s: run, check and measure ONNX models at the edge\n\n", nori_version());
    fprintf(f, "usage: nori VERB [ARGUMENT ...] [--option ...]\n");
    const char *group = "";
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(group, verbs[i]->group) != 0) {
            group = verbs[i]->group;
            fprintf(f, "\n%s%s%s\n", bold, group, plain);
        }
        fprintf(f, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    fprintf(f, "\n`nori VERB --help` tells a verb's options; `nori --version` the version;\n"
               "`nori completion bash` prints shell completion.\n"
               "exit codes: 0 yes, 1 no, 2 usage, 3 bad model or data, 4 not supported here\n");
}

static void print_options(FILE *f, const cli_option *o)
{
    for (; o && o->name; o++) {
        char left[48];
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(f, "  %-24s %s\n", left, o->help);
    }
}

static void verb_help(FILE *f, const cli_verb *v)
{
    fprintf(f, "usage: nori %s %s\n\n%s\n", v->name, v->arguments, v->summary);
    if (v->options) {
        fprintf(f, "\noptions\n");
        print_options(f, v->options);
    }
    fprintf(f, "\ncommon options\n");
    print_options(f, common);
    if (v->examples) {
        fprintf(f, "\nexamples\n%s", v->examples);
    }
}

static const cli_option *find_option(const cli_verb *v, const char *name, size_t n)
{
    for (const cli_option *o = v->options; o && o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) {
            return o;
        }
    }
    for (const cli_option *o = common; o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) {
            return o;
        }
    }
    return NULL;
}

static bool parse(cli_args *args, int argc, char **argv)
{
    bool only_positional = false;
    for (int i = 2; i < argc; i++) {
        const char *a = argv[i];
        if (only_positional || a[0] != '-' || a[1] == 0) {
            if (args->count == (int)(sizeof(args->positional) / sizeof(args->positional[0]))) {
                cli_usage(args, "too many arguments");
                return false;
            }
            args->positional[args->count++] = a;
            continue;
        }
        if (strcmp(a, "--") == 0) {
            only_positional = true;
            continue;
        }
        const char *equals = strchr(a, '=');
        size_t n = equals ? (size_t)(equals - a) : strlen(a);
        const cli_option *o = find_option(args->verb, strcmp(a, "-h") == 0 ? "--help" : a,
                                          strcmp(a, "-h") == 0 ? 6 : n);
        if (!o) {
            cli_usage(args, "unknown option %.*s", (int)n, a);
            return false;
        }
        const char *value = equals ? equals + 1 : NULL;
        if (o->value && !value) {
            if (i + 1 == argc) {
                cli_usage(args, "option %s needs a value: %s %s", o->name, o->name, o->value);
                return false;
            }
            value = argv[++i];
        } else if (!o->value && value) {
            cli_usage(args, "option %s takes no value", o->name);
            return false;
        }
        if (args->n_given == CLI_MAX_OPTIONS) {
            cli_usage(args, "too many options");
            return false;
        }
        args->given[args->n_given].option = o;
        args->given[args->n_given++].value = value;
    }
    args->json = cli_has(args, "--json");
    args->quiet = cli_has(args, "--quiet");
    return true;
}

static int completion(void)
{
    printf("_nori() {\n    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < VERBS; i++) {
        printf("%s ", verbs[i]->name);
    }
    printf("\" -- \"$cur\"))\n        return\n    fi\n    case \"$cur\" in -*) case \"$verb\" in\n");
    for (size_t i = 0; i < VERBS; i++) {
        printf("        %s) COMPREPLY=($(compgen -W \"", verbs[i]->name);
        for (const cli_option *o = verbs[i]->options; o && o->name; o++) {
            printf("%s ", o->name);
        }
        for (const cli_option *o = common; o->name; o++) {
            printf("%s ", o->name);
        }
        printf("\" -- \"$cur\"));;\n");
    }
    printf("    esac;; *) COMPREPLY=($(compgen -f -- \"$cur\"));; esac\n}\n"
           "complete -o filenames -F _nori nori\n");
    return EXIT_YES;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (argc > 2) {
            for (size_t i = 0; i < VERBS; i++) {
                if (strcmp(argv[2], verbs[i]->name) == 0) {
                    verb_help(stdout, verbs[i]);
                    return EXIT_YES;
                }
            }
        }
        overview(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_YES;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nori %s\n", nori_version());
        return EXIT_YES;
    }
    if (strcmp(argv[1], "completion") == 0) {
        return completion();
    }
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(argv[1], verbs[i]->name) == 0) {
            static cli_args args;
            args.verb = verbs[i];
            if (!parse(&args, argc, argv)) {
                return EXIT_USAGE;
            }
            if (cli_has(&args, "--help")) {
                verb_help(stdout, verbs[i]);
                return EXIT_YES;
            }
            int code = verbs[i]->run(&args);
            if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "nori: the output could not be written\n");
                return code ? code : EXIT_BAD;
            }
            return code;
        }
    }
    fprintf(stderr, "nori: there is no verb \"%s\"\n\n", argv[1]);
    overview(stderr);
    return EXIT_USAGE;
}
