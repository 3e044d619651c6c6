/* main.c: the table of verbs (verbs.h) and the reading of arguments. A verb is a file cmd_<verb>.c. */
#include <signal.h>
#include <string.h>

#include "cli.h"

const cli_verb *const cli_verbs[] = {
#define VERB(name) &cli_##name,
#include "verbs.h"
#undef VERB
    NULL};

static const cli_option *find_option(const cli_verb *v, const char *name, size_t n)
{
    for (const cli_option *o = v->options; o && o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) {
            return o;
        }
    }
    return NULL;
}

/* Long words are cut: the rest of the message is what helps. */
#define SHOWN 80

/* Whether a word of n bytes is the other with an 's' behind it: --providers and --provider. */
static bool near_is(const char *plain, const char *word, size_t n)
{
    size_t size = n > 0 && word[n - 1] == 's' ? n - 1 : 0;
    return size > 0 && strlen(plain) >= size && strncmp(plain, word, size) == 0 &&
           (plain[size] == 0 || plain[size] == '=');
}

static bool unknown_option(cli_args *args, const char *a, size_t n)
{
    const char *near = cli_near_option(args->verb, a, n);
    const cli_verb *other = NULL;
    for (size_t i = 0; cli_verbs[i] && !other; i++) {
        other = find_option(cli_verbs[i], a, n) ? cli_verbs[i] : NULL;
    }
    const char *cut = n > SHOWN ? "..." : "";
    int shown = n > SHOWN ? SHOWN : (int)n;
    bool own = near && (near_is(near, a, n) || near_is(a, near, strlen(near)));
    if (other && !own) {
        cli_usage(args, "unknown option %.*s: it is one of `nori %s`", shown, a, other->name);
    } else if (near) {
        cli_usage(args, "unknown option %.*s%s; did you mean %s?", shown, a, cut, near);
    } else {
        cli_usage(args, "unknown option %.*s%s", shown, a, cut);
    }
    return false;
}

/* One argument that begins with a dash; *i moves past a value of its own. */
static bool take_option(cli_args *args, int argc, char **argv, int *i)
{
    const char *a = strcmp(argv[*i], "-h") == 0   ? "--help"
                    : strcmp(argv[*i], "-o") == 0 ? "--output"
                                                  : argv[*i];
    const char *equals = strchr(a, '=');
    size_t n = equals ? (size_t)(equals - a) : strlen(a);
    const cli_option *o = find_option(args->verb, a, n);
    if (!o) {
        return unknown_option(args, a, n);
    }
    const char *value = equals ? equals + 1 : NULL;
    if (o->value && !value) {
        if (*i + 1 == argc) {
            cli_usage(args, "option %s needs a value: %s %s", o->name, o->name, o->value);
            return false;
        }
        value = argv[++*i];
    } else if (!o->value && value) {
        cli_usage(args, "option %s takes no value", o->name);
        return false;
    }
    if (value && !value[0]) { /* often a variable of a script that was not set */
        cli_usage(args, "option %s needs a value, it was given an empty one: %s %s", o->name,
                  o->name, o->value);
        return false;
    }
    if (args->n_given == CLI_MAX_OPTIONS) {
        cli_usage(args, "more than %d options", CLI_MAX_OPTIONS);
        return false;
    }
    args->given[args->n_given].option = o;
    args->given[args->n_given++].value = value;
    return true;
}

/* "-3.2" is a number, not an option: no option begins with a digit. */
static bool is_option(const char *a)
{
    return a[0] == '-' && a[1] != 0 && a[1] != '.' && !(a[1] >= '0' && a[1] <= '9');
}

static bool parse(cli_args *args, int argc, char **argv)
{
    const int most = (int)(sizeof(args->positional) / sizeof(args->positional[0]));
    bool only_positional = false;
    for (int i = 2; i < argc; i++) {
        const char *a = argv[i];
        if (!only_positional && strcmp(a, "--") == 0) {
            only_positional = true;
        } else if (!only_positional && is_option(a)) {
            if (!take_option(args, argc, argv, &i)) {
                return false;
            }
        } else if (args->count == most) {
            cli_usage(args, "more than %d arguments", most);
            return false;
        } else if (!a[0]) {
            cli_usage(args, "argument %d is empty", args->count + 1);
            return false;
        } else {
            args->positional[args->count++] = a;
        }
    }
    args->json = cli_has(args, "--json");
    args->quiet = cli_has(args, "--quiet");
    return true;
}

static int run_verb(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    args.verb = verb;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_verb_help(stdout, verb);
            return EXIT_YES;
        }
    }
    int code = parse(&args, argc, argv) ? cli_check_targets(&args) : EXIT_USAGE;
    code = code == EXIT_YES ? verb->run(&args) : code;
    nori_env_free(args.env);
    return code;
}

int main(int argc, char **argv)
{
    int code = EXIT_YES;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is an error of writing, said as one */
    const cli_verb *verb = argc < 2 ? NULL : cli_find_verb(argv[1]);
    if (verb) {
        code = run_verb(verb, argc, argv);
    } else if (argc < 2) {
        cli_overview(stderr);
        return EXIT_USAGE;
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_overview(stdout);
    } else if (strcmp(argv[1], "--version") == 0) {
        printf("nori %s\n", nori_version());
    } else if (argv[1][0] == '-') {
        fprintf(stderr, "nori: %.*s stands where a verb was expected: nori VERB [--option ...]\n"
                        "`nori help` lists the verbs\n", SHOWN, argv[1]);
        return EXIT_USAGE;
    } else {
        const char *near = cli_near_verb(argv[1]);
        fprintf(stderr, "nori: there is no verb \"%.*s\"", SHOWN, argv[1]);
        if (near) {
            fprintf(stderr, "; did you mean %s?", near);
        }
        fprintf(stderr, "\n`nori help` lists the verbs\n");
        return EXIT_USAGE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "nori: error: the output could not be written\n");
        return code ? code : EXIT_BAD;
    }
    return code;
}
