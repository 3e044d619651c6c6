/* test_external.c: where external data may lie, and which bytes of it a tensor may have. A folder
 * of real files, so that each location that is refused is one that could have been opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/byte_order.h"
#include "graph/tensor.h"
#include "test_alloc.h"

/* <root>/model/{weights.bin, sub/more.bin, empty.bin}, <root>/secret.bin,
 * <root>/model-evil/near.bin */
static char root[64], base[80];

static const char *in_root(const char *rest)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", root, rest);
    return path;
}

static void make_file(const char *rest, const char *bytes)
{
    int fd = open(in_root(rest), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
    assert_int_equal(close(fd), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/nori-external-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(base, sizeof(base), "%s/model", root);
    static const char *const folders[] = {"model", "model/sub", "model-evil", "store", "cache"};
    for (size_t i = 0; i < NORI__COUNT(folders); i++) {
        assert_int_equal(mkdir(in_root(folders[i]), 0700), 0);
    }
    make_file("model/weights.bin", "0123456789abcdef");
    make_file("model/sub/more.bin", "MORE");
    make_file("model/empty.bin", "");
    make_file("secret.bin", "secret");
    make_file("model-evil/near.bin", "near");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

/* ---- one view ---- */

typedef struct ask {
    nori__str location;
    const char *offset, *length; /* NULL: not said */
    uint64_t expected;
    const char *base, *real_dir;
    bool allow_outside;
} ask;

/* The bytes go to out, terminated. */
static nori_status view(const ask *a, char out[32], nori_error *err)
{
    nori__pb_entry entries[4] = {{.key = NORI__STR("location"), .value = a->location}};
    nori__pb_tensor t = {.name = NORI__STR("w"), .data_location = 1};
    t.external.items = entries;
    t.external.count = 1;
    if (a->offset) {
        entries[t.external.count++] =
            (nori__pb_entry){.key = NORI__STR("offset"), .value = {a->offset, strlen(a->offset)}};
    }
    if (a->length) {
        entries[t.external.count++] =
            (nori__pb_entry){.key = NORI__STR("length"), .value = {a->length, strlen(a->length)}};
    }
    entries[t.external.count++] =
        (nori__pb_entry){.key = NORI__STR("checksum"), .value = NORI__STR("0")};
    nori__external *e = NULL;
    nori_status s = nori__external_create(&nori__malloc, a->base ? a->base : base, a->real_dir,
                                          a->allow_outside, &e, err);
    assert_int_equal(s, NORI_OK);
    nori__str bytes = {NULL, 0}, again = {NULL, 0};
    s = nori__external_view(e, &t, a->expected, &bytes, err);
    if (s == NORI_OK) {
        assert_int_equal(bytes.n, a->expected);
        assert_true(bytes.n < 32);
        if (bytes.n > 0) {
            memcpy(out, bytes.p, bytes.n);
        }
        out[bytes.n] = 0;
        assert_int_equal(nori__external_view(e, &t, a->expected, &again, err), NORI_OK);
        assert_ptr_equal(again.p, bytes.p); /* mapped once */
    }
    nori__external_free(e);
    return s;
}

static void assert_view(ask a, const char *text)
{
    char out[32];
    nori_error err = {0};
    a.expected = strlen(text);
    nori_status s = view(&a, out, &err);
    if (s != NORI_OK) {
        fail_msg("%.*s: %s", (int)a.location.n, a.location.p, err.message);
    }
    assert_string_equal(out, text);
}

static void assert_refused(ask a, nori_status status, const char *message, const char *hint)
{
    char out[32];
    nori_error err = {0};
    nori_status s = view(&a, out, &err);
    if (s != status || !strstr(err.message, message) || !strstr(err.hint, hint)) {
        fail_msg("\"%.*s\": status %d, \"%s\" (%s); expected %d, \"%s\" (%s)", (int)a.location.n,
                 a.location.n ? a.location.p : "", (int)s, err.message, err.hint, (int)status,
                 message, hint);
    }
}

/* ---- locations ---- */

static void good_locations(void **state)
{
    (void)state;
    assert_view((ask){.location = NORI__STR("weights.bin")}, "0123456789abcdef");
    assert_view((ask){.location = NORI__STR("./weights.bin")}, "0123456789abcdef");
    assert_view((ask){.location = NORI__STR("sub/more.bin")}, "MORE");
    make_file("model/..odd..name", "odd");
    assert_view((ask){.location = NORI__STR("..odd..name")}, "odd");
    make_file("model/a:b", "colon"); /* one letter before it would be a drive */
    make_file("model/ab:c", "colon");
    assert_view((ask){.location = NORI__STR("ab:c")}, "colon");
    char here[256];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(base), 0);
    assert_view((ask){.location = NORI__STR("weights.bin"), .base = "."}, "0123456789abcdef");
    assert_view((ask){.location = NORI__STR("weights.bin"), .base = ""}, "0123456789abcdef");
    assert_int_equal(chdir(here), 0);
}

/* All but those that name no file on this system name one that is there. */
static void bad_locations(void **state)
{
    (void)state;
    char absolute[128], deep[5000], through[128];
    snprintf(absolute, sizeof(absolute), "%s/weights.bin", base);
    snprintf(through, sizeof(through), "../%s/weights.bin", strrchr(base, '/') + 1);
    memset(deep, 'x', sizeof(deep));
    make_file("model/x\\y", "backslash");
    const struct {
        nori__str location;
        const char *reason;
    } cases[] = {
        {NORI__STR(""), "is empty"},
        {NORI__STR("../secret.bin"), "contains '..'"},
        {NORI__STR("../../../../../../../etc/passwd"), "contains '..'"},
        {NORI__STR("sub/../../secret.bin"), "contains '..'"},
        {NORI__STR("sub/../weights.bin"), "contains '..'"},
        {NORI__STR("sub/.."), "contains '..'"},
        {NORI__STR(".."), "contains '..'"},
        {{through, strlen(through)}, "contains '..'"},
        {{absolute, strlen(absolute)}, "is an absolute path"},
        {NORI__STR("/etc/passwd"), "is an absolute path"},
        {NORI__STR("//host/share/weights.bin"), "is an absolute path"},
        {NORI__STR("/"), "is an absolute path"},
        {NORI__STR("C:\\weights.bin"), "contains a backslash"},
        {NORI__STR("\\\\host\\share\\w"), "contains a backslash"},
        {NORI__STR("..\\secret.bin"), "contains a backslash"},
        {NORI__STR("x\\y"), "contains a backslash"},
        {NORI__STR("C:weights.bin"), "names a drive"},
        {NORI__STR("c:/weights.bin"), "names a drive"},
        {NORI__STR("a:b"), "names a drive"},
        {NORI__STR("weights.bin\0"), "contains a NUL byte"},
        {NORI__STR("weights.bin\0.txt"), "contains a NUL byte"},
        {NORI__STR("\0"), "contains a NUL byte"},
        {NORI__STR("sub//more.bin"), "contains '//'"},
        {NORI__STR("sub/"), "names a folder"},
        {{deep, sizeof(deep)}, "is too long"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int outside = 0; outside < 2; outside++) {
            assert_refused(
                (ask){.location = cases[i].location, .expected = 4, .allow_outside = outside},
                NORI_ERROR_MODEL, cases[i].reason, "not opened");
        }
    }
}

static void what_is_no_file(void **state)
{
    (void)state;
    assert_refused((ask){.location = NORI__STR("none.bin"), .expected = 4}, NORI_ERROR_IO,
                   "none.bin", "beside the model");
    assert_refused((ask){.location = NORI__STR("sub"), .expected = 4}, NORI_ERROR_IO, "folder", "");
    assert_refused((ask){.location = NORI__STR("weights.bin/x"), .expected = 4}, NORI_ERROR_IO,
                   "weights.bin/x", "");
    assert_int_equal(mkfifo(in_root("model/fifo"), 0600), 0); /* must not hang */
    assert_refused((ask){.location = NORI__STR("fifo"), .expected = 4}, NORI_ERROR_IO,
                   "not a regular file", "");
    assert_int_equal(symlink("loop", in_root("model/loop")), 0);
    assert_refused((ask){.location = NORI__STR("loop"), .expected = 4}, NORI_ERROR_IO, "loop", "");
}

/* ---- links ---- */

static void links_that_leave_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *target, *link, *location, *text;
    } cases[] = {
        {"../secret.bin", "model/out1", "out1", "secret"},
        {"..", "model/out2", "out2/secret.bin", "secret"},
        {"out1", "model/out3", "out3", "secret"},
        {"../model-evil/near.bin", "model/out4", "out4", "near"}, /* only begins like the folder */
        {"../model-evil", "model/out5", "out5/near.bin", "near"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        assert_int_equal(symlink(cases[i].target, in_root(cases[i].link)), 0);
        ask a = {.location = {cases[i].location, strlen(cases[i].location)},
                 .expected = strlen(cases[i].text)};
        assert_refused(a, NORI_ERROR_MODEL, "outside the model's folder", "--allow-outside");
        a.allow_outside = true;
        assert_view(a, cases[i].text);
    }
}

static void links_that_stay_are_taken(void **state)
{
    (void)state;
    assert_int_equal(symlink("weights.bin", in_root("model/in1")), 0);
    assert_int_equal(symlink("../model/sub", in_root("model/in2")), 0);
    assert_view((ask){.location = NORI__STR("in1")}, "0123456789abcdef");
    assert_view((ask){.location = NORI__STR("in2/more.bin")}, "MORE");
    assert_int_equal(symlink("model", in_root("alias")), 0); /* the folder itself a link */
    assert_view((ask){.location = NORI__STR("sub/more.bin"), .base = in_root("alias")}, "MORE");
}

/* A second name of a file that lies elsewhere is a file like any other, but for its count of names. */
static void hard_links_are_refused(void **state)
{
    (void)state;
    const nori__str hard = NORI__STR("hard.bin");
    make_file("model/whole.bin", "alone");
    assert_int_equal(link(in_root("secret.bin"), in_root("model/hard.bin")), 0);
    assert_int_equal(symlink("hard.bin", in_root("model/to_hard.bin")), 0);
    assert_refused((ask){.location = hard, .expected = 6}, NORI_ERROR_MODEL, "2 names (hard links)",
                   "--allow-outside");
    assert_refused((ask){.location = NORI__STR("to_hard.bin"), .expected = 6}, NORI_ERROR_MODEL,
                   "2 names (hard links)", "copy it");
    assert_view((ask){.location = hard, .allow_outside = true}, "secret");
    assert_view((ask){.location = NORI__STR("whole.bin")}, "alone");
    assert_int_equal(unlink(in_root("secret.bin")), 0); /* what is left is the model's own */
    assert_view((ask){.location = hard}, "secret");
    make_file("secret.bin", "secret");
}

/* Model and data are links from one folder into another, as caches of downloads are made. */
static void caches_of_links_are_taken(void **state)
{
    (void)state;
    make_file("store/4d7a", "blob");
    assert_int_equal(symlink("../store/4d7a", in_root("cache/weights.bin")), 0);
    assert_int_equal(symlink("../secret.bin", in_root("cache/secret.bin")), 0);
    char *store = realpath(in_root("store"), NULL), cache[128];
    assert_non_null(store);
    snprintf(cache, sizeof(cache), "%s/cache", root);
    assert_view((ask){.location = NORI__STR("weights.bin"), .base = cache, .real_dir = store},
                "blob");
    assert_refused((ask){.location = NORI__STR("weights.bin"), .base = cache, .expected = 4},
                   NORI_ERROR_MODEL, "outside the model's folder", "--allow-outside");
    assert_refused(
        (ask){.location = NORI__STR("secret.bin"), .base = cache, .real_dir = store, .expected = 6},
        NORI_ERROR_MODEL, "outside the model's folder", "--allow-outside");
    free(store);
}

/* ---- offset and length ---- */

static void parts_of_a_file(void **state)
{
    (void)state;
    const nori__str w = NORI__STR("weights.bin");
    assert_view((ask){.location = w, .offset = "4"}, "456789abcdef");
    assert_view((ask){.location = w, .offset = "4", .length = "4"}, "4567");
    assert_view((ask){.location = w, .offset = "15", .length = "1"}, "f");
    assert_view((ask){.location = w, .offset = "16", .length = "0"}, "");
    assert_view((ask){.location = w, .offset = "0004"}, "4567");
    assert_view((ask){.location = NORI__STR("empty.bin")}, "");
}

static void parts_that_are_not_there(void **state)
{
    (void)state;
    static const struct {
        const char *offset, *length;
        uint64_t expected;
        const char *message;
    } cases[] = {
        {NULL, NULL, 17, "17 bytes from byte 0 on were expected"},
        {"13", "4", 4, "4 bytes from byte 13 on were expected"},
        {"17", "0", 0, "has only 16"},
        {"18446744073709551615", "4", 4, "has only 16"},
        {"18446744073709551612", "4", 4, "has only 16"},
        {"4", "18446744073709551615", UINT64_MAX, "has only 16"},
        {"4", "5", 4, "has 5 bytes, type and shape need 4"},
        {"4", "3", 4, "has 3 bytes, type and shape need 4"},
        {"18446744073709551616", "4", 4, "is not a number of bytes"},
        {"99999999999999999999999", "4", 4, "is not a number of bytes"},
        {"-4", "4", 4, "is not a number of bytes"},
        {"", "4", 4, "is not a number of bytes"},
        {" 4", "4", 4, "is not a number of bytes"},
        {"4", "0x4", 4, "is not a number of bytes"},
        {"4", "4.0", 4, "is not a number of bytes"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        assert_refused((ask){.location = NORI__STR("weights.bin"),
                             .offset = cases[i].offset,
                             .length = cases[i].length,
                             .expected = cases[i].expected},
                       NORI_ERROR_MODEL, cases[i].message, "");
    }
}

/* ---- as tensors ---- */

static void tensors_over_files(void **state)
{
    (void)state;
    int64_t dims[] = {2, 1};
    nori__pb_entry entries[] = {{.key = NORI__STR("location"), .value = NORI__STR("weights.bin")},
                                {.key = NORI__STR("offset"), .value = NORI__STR("8")}};
    nori__pb_tensor pb = {.name = NORI__STR("w"), .data_type = NORI_UINT32, .data_location = 1};
    pb.dims.items = dims;
    pb.dims.count = 2;
    pb.external.items = entries;
    pb.external.count = 2;
    nori_error err = {0};
    nori_tensor *t = NULL;
    assert_int_equal(nori__tensor_from_pb(&nori__malloc, &pb, NULL, &t, &err), NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "no folder to look in"));
    nori__external *e = NULL;
    assert_int_equal(nori__external_create(&nori__malloc, base, NULL, false, &e, NULL), NORI_OK);
    assert_int_equal(nori__tensor_from_pb(&nori__malloc, &pb, e, &t, NULL), NORI_OK);
    assert_memory_equal(nori_tensor_const_data(t), NORI__BIG_ENDIAN ? "ba98fedc" : "89abcdef", 8);
    nori_tensor_free(t);
    entries[1].value = NORI__STR("3"); /* not aligned: copied */
    assert_int_equal(nori__tensor_from_pb(&nori__malloc, &pb, e, &t, NULL), NORI_OK);
    assert_memory_equal(nori_tensor_const_data(t), NORI__BIG_ENDIAN ? "6543a987" : "3456789a", 8);
    assert_int_equal((uintptr_t)nori_tensor_const_data(t) % 4, 0);
    nori_tensor_free(t);
    pb.data_type = NORI_STRING;
    assert_int_equal(nori__tensor_from_pb(&nori__malloc, &pb, e, &t, NULL), NORI_ERROR_MODEL);
    nori__external_free(e);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    nori__pb_entry entry = {.key = NORI__STR("location"), .value = NORI__STR("weights.bin")};
    nori__pb_tensor pb = {.data_location = 1};
    pb.external.items = &entry;
    pb.external.count = 1;
    for (size_t fail_at = 1;; fail_at++) {
        test_alloc ta;
        test_alloc_init(&ta, fail_at);
        nori__external *e = NULL;
        nori__str bytes;
        nori_status s = nori__external_create(&ta.allocator, base, NULL, false, &e, NULL);
        if (s == NORI_OK) {
            s = nori__external_view(e, &pb, 16, &bytes, NULL);
        }
        nori__external_free(e);
        assert_int_equal(ta.live, 0);
        assert_false(ta.wrong_size);
        if (s == NORI_OK) {
            assert_true(fail_at > 3);
            break;
        }
        assert_int_equal(s, NORI_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_locations),
        cmocka_unit_test(bad_locations),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(links_that_leave_are_refused),
        cmocka_unit_test(links_that_stay_are_taken),
        cmocka_unit_test(hard_links_are_refused),
        cmocka_unit_test(caches_of_links_are_taken),
        cmocka_unit_test(parts_of_a_file),
        cmocka_unit_test(parts_that_are_not_there),
        cmocka_unit_test(tensors_over_files),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
