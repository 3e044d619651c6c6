/* The writer of HTML reports: what it is given never breaks out of the page, pages are well formed,
 * need no network, and charts say what the numbers say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

static char *written(FILE *f)
{
    long size = ftell(f);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    rewind(f);
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    fclose(f);
    return text;
}

/* Every element that is opened is closed in its turn. */
static void check_nesting(const char *page)
{
    char open[64][16];
    int depth = 0;
    for (const char *p = strchr(page, '<'); p; p = strchr(p + 1, '<')) {
        char name[16] = "";
        bool end = p[1] == '/';
        if (sscanf(p + 1 + end, "%15[a-z0-9]", name) != 1) {
            continue; /* the doctype */
        }
        const char *close = strchr(p, '>');
        assert_non_null(close);
        if (end) {
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else if (close[-1] != '/' && strcmp(name, "meta") != 0) {
            assert_true(depth < 64);
            memcpy(open[depth++], name, sizeof(name));
        }
    }
    assert_int_equal(depth, 0);
}

static size_t count(const char *page, const char *what)
{
    size_t n = 0;
    for (const char *p = strstr(page, what); p; p = strstr(p + 1, what)) {
        n++;
    }
    return n;
}

static void whole_page(void **state)
{
    (void)state;
    static const double x[] = {0, 1, 2, 3}, y[] = {1, NAN, 1000, 0};
    static const double bars[] = {3, 5, -1, INFINITY}, counts[] = {1, 0, 100};
    static const char *const names[] = {"</svg><script>alert(1)</script>", "b\"c'd&\xff\x01"};
    static const char *const sides[] = {"before", "after"};
    cli_page p;
    FILE *f = tmpfile();
    assert_non_null(f);
    cli_page_begin(&p, f, "a <b> & c", "sub");
    cli_page_figure(&p, "size", "%d kB", 12);
    cli_page_item(&p, "one");
    cli_page_item(&p, "two");
    cli_page_section(&p, "tables");
    cli_page_table(&p, "name|>bytes");
    for (int i = 0; i < 2; i++) {
        cli_page_row(&p);
        cli_page_cell(&p, "%s", names[i]);
        cli_page_cell(&p, "%d", i);
    }
    cli_page_table_end(&p);
    cli_page_lines(&p, &(cli_chart){.title = "t", .y = "dB", .mark = 20, .mark_name = "least"},
                   &(cli_series){.name = "s", .x = x, .y = y, .count = 4}, 1);
    cli_page_lines(&p, &(cli_chart){.title = "t", .log_y = true},
                   &(cli_series){.name = "s", .x = x, .y = y, .count = 4}, 1);
    cli_page_bars(&p, &(cli_chart){.title = names[1]}, names, bars, 2, sides, 2);
    cli_page_histogram(&p, &(cli_chart){.title = "h", .log_y = true}, -1, 2, counts, 3, 0, 1.5);
    cli_page_finish(&p);
    char *page = written(f);
    check_nesting(page);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "://"));
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf"));
    assert_non_null(strstr(page, "a &#60;b&#62; &#38; c"));
    assert_non_null(strstr(page, "b&#34;c&#39;d&#38;\xef\xbf\xbd\xef\xbf\xbd"));
    assert_non_null(strstr(page, "<td class=\"n\">1</td>"));
    assert_int_equal(count(page, "<svg"), 4);
    /* Three points are there, two of them above 0; three bars; two filled bins. */
    assert_int_equal(count(page, "<circle"), 3 + 2);
    assert_int_equal(count(page, "<title>"), 1 + 5 + 3 + 2);
    free(page);
}

/* Where a line's points lie: the least at the bottom, the largest at the top, ticks at round steps. */
static void scales(void **state)
{
    (void)state;
    static const double x[] = {0, 10}, y[] = {0, 60};
    cli_page p = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    p.f = f;
    cli_page_lines(&p, &(cli_chart){.title = "t"}, &(cli_series){.x = x, .y = y, .count = 2}, 1);
    char *page = written(f);
    assert_non_null(strstr(page, "M64.0 236.0L844.0 10.0"));
    assert_non_null(strstr(page, ">20</text>"));
    assert_int_equal(count(page, "<text"), 6 + 7); /* 0, 2 ... 10 and 0, 10 ... 60 */
    free(page);
}

static void nothing_to_show(void **state)
{
    (void)state;
    static const double none[] = {NAN, INFINITY};
    static const char *const names[] = {"a", "b"};
    cli_page p = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    p.f = f;
    cli_page_lines(&p, &(cli_chart){.title = "t"}, &(cli_series){.x = none, .y = none, .count = 2}, 1);
    cli_page_bars(&p, &(cli_chart){.title = "t", .log_y = true}, names, none, 2, NULL, 0);
    cli_page_histogram(&p, &(cli_chart){.title = "t"}, 0, 0, none, 2, 0, 0);
    assert_int_equal(ftell(f), 0);
    fclose(f);
}

/* One value, and values that differ in their last bit alone, still get an axis. */
static void narrow(void **state)
{
    (void)state;
    static const double x[] = {1, 2}, same[] = {5, 5};
    double close[] = {1, nextafter(1, 2)};
    cli_page p = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    p.f = f;
    cli_page_lines(&p, &(cli_chart){.title = "t"}, &(cli_series){.x = x, .y = same, .count = 2}, 1);
    cli_page_lines(&p, &(cli_chart){.title = "t"}, &(cli_series){.x = x, .y = close, .count = 2}, 1);
    char *page = written(f);
    check_nesting(page);
    assert_null(strstr(page, "nan"));
    assert_true(strlen(page) < 20000);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_page),
        cmocka_unit_test(scales),
        cmocka_unit_test(nothing_to_show),
        cmocka_unit_test(narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
