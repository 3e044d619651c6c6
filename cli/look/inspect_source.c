/* inspect_source.c: nori inspect --text: the model in the textual syntax of ONNX. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"
#include "nori/text.h"

/* "all" or a count of elements. */
static bool inline_elements(const cli_args *args, int64_t *out)
{
    const char *value = cli_value(args, "--inline");
    long most = 0;
    if (!value) {
        return true;
    }
    if (strcmp(value, "all") == 0) {
        *out = INT64_MAX;
        return true;
    }
    if (!cli_number(args, "--inline", 0, 1000000000L, 0, &most)) {
        return false;
    }
    *out = most;
    return true;
}

int inspect_source(const cli_args *args, const nori_model *model)
{
    nori_text_options o;
    nori_text_left left = {.size = sizeof(left)};
    nori_error err = {0};
    char *text = NULL, bytes[32];
    size_t size = 0;
    nori_text_options_default(&o);
    if (!inline_elements(args, &o.inline_elements)) {
        return EXIT_USAGE;
    }
    if (nori_model_text(model, &o, &text, &size, &left, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (left.tensors > 0) {
        cli_bytes_text(left.bytes, bytes, sizeof(bytes));
        printf("# The content of %zu tensor%s (%s) is left out, {...} stands for it: give `nori build`\n"
               "# --weights FILE that holds it, or write all of it with --inline all.\n",
               left.tensors, left.tensors == 1 ? "" : "s", bytes);
    }
    bool terminal = isatty(STDOUT_FILENO) == 1;
    for (size_t i = 0; terminal && i < size; i++) { /* names and texts of a model must not steer it */
        unsigned char c = (unsigned char)text[i];
        text[i] = (char)((c < ' ' && c != '\n') || c == 127 ? '?' : c);
    }
    fwrite(text, 1, size, stdout);
    nori_text_free(text);
    return EXIT_YES;
}
