/* help.c: what the command says about itself: overview, help of a verb, completion, near words. */
#include <string.h>

#include "cli.h"

const cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (strcmp(name, cli_verbs[i]->name) == 0) {
            return cli_verbs[i];
        }
    }
    return NULL;
}

/* ---- near words ---- */

#define LONGEST 40

/* Edits (a letter put in, left out, changed, or two swapped) from a to b; LONGEST: too many. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) {
        return LONGEST;
    }
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *cli_near(const char *word, size_t size, const char *(*at)(const void *user, size_t i),
                     const void *user)
{
    const char *found = NULL, *have;
    size_t dashes = size > 2 && strncmp(word, "--", 2) == 0 ? 2 : 0; /* all options have them */
    size_t best = (size - dashes) / 3; /* more edits than that make another word */
    best = best > 0 ? best : 1;
    for (size_t i = 0; (have = at(user, i)) != NULL; i++) {
        size_t d = distance(word, size, have, strlen(have));
        /* What the word begins, as --prov for --provider, is near too. */
        if (size >= dashes + 2 && strncmp(have, word, size) == 0) {
            d = 1;
        }
        if (d <= best && (!found || d < best)) {
            best = d;
            found = have;
        }
    }
    return found;
}

static const char *verb_at(const void *user, size_t i)
{
    (void)user;
    return cli_verbs[i] ? cli_verbs[i]->name : NULL;
}

const char *cli_near_verb(const char *name)
{
    return cli_near(name, strlen(name), verb_at, NULL);
}

static const char *option_at(const void *user, size_t i)
{
    const cli_option *options = user;
    return options ? options[i].name : NULL;
}

const char *cli_near_option(const cli_verb *verb, const char *name, size_t size)
{
    return cli_near(name, size, option_at, verb->options);
}

/* ---- help ---- */

void cli_overview(FILE *f)
{
    const char *bold = cli_colour(f) ? "\033[1m" : "", *plain = cli_colour(f) ? "\033[0m" : "";
    fprintf(f, "nori %s: run, check and measure ONNX models at the edge\n\n", nori_version());
    fprintf(f, "usage: nori VERB [ARGUMENT ...] [--option ...]\n");
    const char *group = "";
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (strcmp(group, cli_verbs[i]->group) != 0) {
            group = cli_verbs[i]->group;
            fprintf(f, "\n%s%s%s\n", bold, group, plain);
        }
        fprintf(f, "  %-11s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    fprintf(f, "\n`nori VERB --help` tells a verb's options, `nori --version` the version.\n"
               "exit codes: 0 yes, 1 no, 2 usage, 3 bad model or data, 4 not supported here\n");
}

void cli_verb_help(FILE *f, const cli_verb *v)
{
    fprintf(f, "usage: nori %s%s%s\n\n%s\n", v->name, v->arguments[0] ? " " : "", v->arguments,
            v->summary);
    fprintf(f, "\noptions\n");
    for (const cli_option *o = v->options; o && o->name; o++) {
        char left[48];
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(f, "  %-24s %s\n", left, o->help);
    }
    if (v->examples) {
        fprintf(f, "\nexamples\n%s", v->examples);
    }
}

static int run_help(cli_args *args)
{
    if (args->count > 1) {
        return cli_usage(args, "one verb was expected");
    }
    if (args->count == 0) {
        cli_overview(stdout);
        return EXIT_YES;
    }
    const cli_verb *v = cli_find_verb(args->positional[0]);
    if (!v) {
        const char *near = cli_near_verb(args->positional[0]);
        return near ? cli_usage(args, "there is no verb \"%s\"; did you mean %s?",
                                args->positional[0], near)
                    : cli_usage(args, "there is no verb \"%s\"", args->positional[0]);
    }
    cli_verb_help(stdout, v);
    return EXIT_YES;
}

/* ---- completion ---- */

static void print_verbs(void)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("%s%s", i ? " " : "", cli_verbs[i]->name);
    }
}

static int run_completion(cli_args *args)
{
    if (args->count != 1 || strcmp(args->positional[0], "bash") != 0) {
        return cli_usage(args, "the name of a shell was expected: bash");
    }
    printf("# completion of nori for bash: source this, or put it where bash-completion looks\n"
           "_nori() {\n    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    print_verbs();
    printf(" --help --version\"\n    elif [ \"$verb\" = help ]; then\n        words=\"");
    print_verbs();
    printf("\"\n    elif [ \"$verb\" = completion ]; then\n        words=bash\n    fi\n"
           "    if [ -z \"$words\" ]; then\n"
           "        case \"$cur\" in\n        -*) ;;\n"
           "        *) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n        esac\n"
           "        case \"$verb\" in\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("        %s) words=\"", cli_verbs[i]->name);
        for (const cli_option *o = cli_verbs[i]->options; o && o->name; o++) {
            printf("%s%s", o == cli_verbs[i]->options ? "" : " ", o->name);
        }
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
           "complete -o filenames -F _nori nori\n");
    return EXIT_YES;
}

static const cli_option options[] = {{"--help", NULL, "this text"}, CLI_END};

const cli_verb cli_help = {"help", "about", "[VERB]", "the verbs, or one verb's options", options,
                           run_help, "  nori help run\n"};
const cli_verb cli_completion = {"completion", "about", "bash", "completion of words for a shell",
                                 options, run_completion,
                                 "  source <(nori completion bash)\n"};
