/* page.c: text, tables and figures of an HTML report; page_chart.c has the charts. */
#include "page_internal.h"

#include <stdarg.h>
#include <string.h>

#include "json.h"

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2329;--dim:#5c6770;--line:#d7dde2;"
    "--soft:#f3f5f7;--c0:#1668c0;--c1:#d9741a;--c2:#2b8a4b;--c3:#a13da1;--bad:#c02626}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14181c;--fg:#e4e8eb;--dim:#98a3ac;"
    "--line:#343c44;--soft:#1d2329;--c0:#5aa5f0;--c1:#f09a4a;--c2:#5cc27f;--c3:#d07fd0;"
    "--bad:#f06a6a}}"
    "body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--fg);"
    "max-width:62rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}"
    ".sub,figcaption,th,.k{color:var(--dim)}"
    ".f{display:inline-block;margin:.6rem 2rem .2rem 0}.f b{display:block;font-size:1.5rem}"
    ".t{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:.15rem .9rem .15rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th.n,td.n{text-align:right}td.n{white-space:nowrap}th{font-weight:500}"
    "figure{margin:1rem 0;overflow-x:auto}svg{font:12px system-ui,sans-serif;max-width:100%}"
    "svg text{fill:var(--fg)}svg .k{fill:var(--dim)}svg .g{stroke:var(--line)}"
    "svg .m{stroke:var(--bad);stroke-dasharray:4 3}svg .keep{fill:var(--c2);opacity:.15}"
    "li+li{margin-top:.2rem}";

void page_escape(FILE *f, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t left = strlen(text); left > 0;) {
        size_t n = cli_utf8_length(p, left);
        if (n == 0 || (p[0] < 0x20 && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f) {
            fputs("\xef\xbf\xbd", f);
            n = 1;
        } else if (strchr("&<>\"'", p[0])) { /* also safe inside attributes */
            fprintf(f, "&#%u;", (unsigned)p[0]);
        } else {
            fwrite(p, 1, n, f);
        }
        p += n;
        left -= n;
    }
}

static void escape_v(FILE *f, const char *fmt, va_list args)
{
    char text[4096];
    vsnprintf(text, sizeof(text), fmt, args);
    page_escape(f, text);
}

/* Ends the list that is open. */
void page_close(cli_page *p)
{
    if (p->list) {
        fputs("</ul>\n", p->f);
        p->list = false;
    }
}

void cli_page_begin(cli_page *p, FILE *f, const char *title, const char *subtitle)
{
    *p = (cli_page){.f = f};
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
          f);
    page_escape(f, title);
    fprintf(f, "</title>\n<style>%s</style></head><body>\n<h1>", style);
    page_escape(f, title);
    fputs("</h1>\n<p class=\"sub\">", f);
    page_escape(f, subtitle ? subtitle : "");
    fputs("</p>\n", f);
}

void cli_page_finish(cli_page *p)
{
    page_close(p);
    fputs("</body></html>\n", p->f);
}

void cli_page_section(cli_page *p, const char *heading)
{
    page_close(p);
    fputs("<h2>", p->f);
    page_escape(p->f, heading);
    fputs("</h2>\n", p->f);
}

void cli_page_text(cli_page *p, const char *fmt, ...)
{
    va_list args;
    page_close(p);
    fputs("<p>", p->f);
    va_start(args, fmt);
    escape_v(p->f, fmt, args);
    va_end(args);
    fputs("</p>\n", p->f);
}

void cli_page_figure(cli_page *p, const char *label, const char *fmt, ...)
{
    va_list args;
    page_close(p);
    fputs("<span class=\"f\"><b>", p->f);
    va_start(args, fmt);
    escape_v(p->f, fmt, args);
    va_end(args);
    fputs("</b><span class=\"k\">", p->f);
    page_escape(p->f, label);
    fputs("</span></span>\n", p->f);
}

void cli_page_item(cli_page *p, const char *fmt, ...)
{
    va_list args;
    fputs(p->list ? "<li>" : "<ul><li>", p->f);
    p->list = true;
    va_start(args, fmt);
    escape_v(p->f, fmt, args);
    va_end(args);
    fputs("</li>\n", p->f);
}

/* ---- tables ---- */

/* The head of a column, its size, and whether it is one of numbers; NULL: past the last. */
static const char *head(const char *heads, int column, size_t *size, bool *number)
{
    for (; column > 0; column--) {
        heads = strchr(heads, '|');
        if (!heads) {
            return NULL;
        }
        heads++;
    }
    *number = heads[0] == '>';
    heads += *number;
    *size = strcspn(heads, "|");
    return heads;
}

void cli_page_table(cli_page *p, const char *heads)
{
    const char *text;
    size_t size;
    bool number;
    page_close(p);
    p->heads = heads;
    p->row = false;
    fputs("<div class=\"t\"><table><thead><tr>", p->f);
    for (int i = 0; (text = head(heads, i, &size, &number)) != NULL; i++) {
        char copy[256];
        snprintf(copy, sizeof(copy), "%.*s", (int)size, text);
        fputs(number ? "<th class=\"n\">" : "<th>", p->f);
        page_escape(p->f, copy);
        fputs("</th>", p->f);
    }
    fputs("</tr></thead><tbody>\n", p->f);
}

void cli_page_row(cli_page *p)
{
    fputs(p->row ? "</tr>\n<tr>" : "<tr>", p->f);
    p->row = true;
    p->cell = 0;
}

void cli_page_cell(cli_page *p, const char *fmt, ...)
{
    va_list args;
    size_t size;
    bool number = false;
    head(p->heads, p->cell++, &size, &number);
    fputs(number ? "<td class=\"n\">" : "<td>", p->f);
    va_start(args, fmt);
    escape_v(p->f, fmt, args);
    va_end(args);
    fputs("</td>", p->f);
}

void cli_page_table_end(cli_page *p)
{
    fputs(p->row ? "</tr>\n</tbody></table></div>\n" : "</tbody></table></div>\n", p->f);
    p->row = false;
}
