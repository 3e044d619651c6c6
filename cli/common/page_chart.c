/* page_chart.c: charts of an HTML report, as SVG inside the page. */
#include <math.h>

#include "page_internal.h"

#define WIDTH 860.0
#define HEIGHT 280.0
#define LEFT 64.0   /* of the plot: room for numbers of the y axis */
#define RIGHT 844.0
#define TOP 10.0
#define BOTTOM 236.0
#define TICKS 6 /* at most about so many on an axis */

typedef struct axis {
    double low, high, step; /* in logarithms where log is set; low and high are multiples of step */
    double from, to;        /* where low and high lie */
    bool log;
} axis;

static bool shown(double v, bool log)
{
    return isfinite(v) && (!log || v > 0);
}

static double at(const axis *a, double v)
{
    v = a->log ? log10(v) : v;
    return a->from + (v - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Steps of 1, 2 or 5 times a power of ten, whose multiples hold [low, high]. */
static axis make_axis(double low, double high, bool log, double from, double to)
{
    axis a = {low, high, 1, from, to, log};
    if (log) {
        a.low = floor(log10(low));
        a.high = ceil(log10(high));
        a.high = a.high > a.low ? a.high : a.low + 1;
        a.step = ceil((a.high - a.low) / TICKS);
        return a;
    }
    double span = high > low ? high - low : fabs(high) > 0 ? fabs(high) : 1;
    double unit = pow(10, floor(log10(span / TICKS))), ratio = span / TICKS / unit;
    a.step = unit * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
    a.low = floor(low / a.step) * a.step;
    a.high = ceil((high > low ? high : low + span) / a.step) * a.step;
    return a;
}

static void open_chart(cli_page *p, const cli_chart *c, double height)
{
    page_close(p);
    fputs("<figure><figcaption>", p->f);
    page_escape(p->f, c->title);
    fprintf(p->f, "</figcaption><svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" "
                  "aria-label=\"",
            WIDTH, height, WIDTH, height);
    page_escape(p->f, c->title);
    fputs("\">\n", p->f);
}

static void close_chart(cli_page *p)
{
    fputs("</svg></figure>\n", p->f);
}

static void tip(cli_page *p, const char *text, double value)
{
    fputs("<title>", p->f);
    if (text) {
        page_escape(p->f, text);
        fputs(": ", p->f);
    }
    fprintf(p->f, "%.6g</title>", value);
}

static void label(cli_page *p, double x, double y, const char *anchor, const char *text)
{
    fprintf(p->f, "<text class=\"k\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    page_escape(p->f, text);
    fputs("</text>\n", p->f);
}

static void grid(cli_page *p, const axis *a, bool upright, double near, double far)
{
    char text[32];
    int n = (int)floor((a->high - a->low) / a->step + 0.5);
    for (int i = 0; i <= n; i++) {
        double v = a->low + i * a->step;
        v = fabs(v) < a->step * 1e-9 ? 0 : v;
        v = a->log ? pow(10, v) : v;
        double pos = at(a, v);
        snprintf(text, sizeof(text), "%.6g", v);
        if (upright) {
            fprintf(p->f, "<path class=\"g\" d=\"M%.1f %.1fV%.1f\"/>", pos, near, far);
            label(p, pos, far + 16, "middle", text);
        } else {
            fprintf(p->f, "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/>", near, pos, far);
            label(p, near - 6, pos + 4, "end", text);
        }
    }
}

static void axis_names(cli_page *p, const cli_chart *c, double bottom)
{
    if (c->x) {
        label(p, (LEFT + RIGHT) / 2, bottom + 34, "middle", c->x);
    }
    if (c->y) {
        double middle = (TOP + bottom) / 2;
        fprintf(p->f, "<text class=\"k\" transform=\"translate(14 %.1f) rotate(-90)\" "
                      "text-anchor=\"middle\">",
                middle);
        page_escape(p->f, c->y);
        fputs("</text>\n", p->f);
    }
}

static void legend(cli_page *p, double x, double y, const char *name, size_t index)
{
    fprintf(p->f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"var(--c%zu)\"/>", x,
            y - 9, index % 4);
    label(p, x + 15, y, "start", name);
}

/* ---- lines ---- */

static void one_line(cli_page *p, const cli_chart *c, const cli_series *s, size_t index,
                     const axis *x, const axis *y)
{
    bool pen = false;
    fprintf(p->f, "<path fill=\"none\" stroke=\"var(--c%zu)\" stroke-width=\"1.6\" d=\"", index % 4);
    for (size_t i = 0; i < s->count && !c->dots; i++) {
        if (!shown(s->x[i], false) || !shown(s->y[i], c->log_y)) {
            pen = false; /* a gap */
            continue;
        }
        fprintf(p->f, "%c%.1f %.1f", pen ? 'L' : 'M', at(x, s->x[i]), at(y, s->y[i]));
        pen = true;
    }
    fputs("\"/>\n", p->f);
    for (size_t i = 0; i < s->count; i++) {
        if (shown(s->x[i], false) && shown(s->y[i], c->log_y)) {
            fprintf(p->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"var(--c%zu)\">",
                    at(x, s->x[i]), at(y, s->y[i]), c->dots ? "4" : "2.2", index % 4);
            tip(p, s->labels ? s->labels[i] : s->name, s->y[i]);
            fputs("</circle>\n", p->f);
        }
    }
}

static void include(double v, double *low, double *high)
{
    *low = v < *low ? v : *low;
    *high = v > *high ? v : *high;
}

void cli_page_lines(cli_page *p, const cli_chart *c, const cli_series *series, size_t count)
{
    double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; i < series[s].count; i++) {
            if (shown(series[s].x[i], false) && shown(series[s].y[i], c->log_y)) {
                include(series[s].x[i], &low_x, &high_x);
                include(series[s].y[i], &low_y, &high_y);
            }
        }
    }
    if (!(low_x <= high_x)) {
        return; /* nothing to show */
    }
    bool marked = c->mark_name && shown(c->mark, c->log_y);
    if (marked) {
        include(c->mark, &low_y, &high_y);
    }
    axis x = make_axis(low_x, high_x, false, LEFT, RIGHT);
    axis y = make_axis(low_y, high_y, c->log_y, BOTTOM, TOP);
    open_chart(p, c, HEIGHT + (count > 1 ? 20 : 0));
    grid(p, &x, true, TOP, BOTTOM);
    grid(p, &y, false, LEFT, RIGHT);
    axis_names(p, c, BOTTOM);
    for (size_t s = 0; s < count; s++) {
        one_line(p, c, &series[s], s, &x, &y);
        if (count > 1) {
            legend(p, LEFT + 190.0 * (double)s, HEIGHT + 12, series[s].name, s);
        }
    }
    if (marked) {
        fprintf(p->f, "<path class=\"m\" d=\"M%.1f %.1fH%.1f\"/>", LEFT, at(&y, c->mark), RIGHT);
        label(p, RIGHT - 4, at(&y, c->mark) - 4, "end", c->mark_name);
    }
    close_chart(p);
}

/* ---- bars ---- */

#define NAME_ROOM 300.0
#define NAME_LETTERS 42 /* fit into it */

/* The end of a long name says more than its beginning. */
static const char *tail(const char *name, char *out, size_t size)
{
    size_t letters = 0, n = 0;
    for (; name[n]; n++) {
        letters += ((unsigned char)name[n] & 0xc0) != 0x80;
    }
    if (letters <= NAME_LETTERS) {
        return name;
    }
    for (size_t keep = 0; n > 0 && keep < NAME_LETTERS - 1; n--) {
        keep += ((unsigned char)name[n - 1] & 0xc0) != 0x80;
    }
    snprintf(out, size, "\xe2\x80\xa6%s", name + n);
    return out;
}

void cli_page_bars(cli_page *p, const cli_chart *c, const char *const *names, const double *values,
                   size_t count, const char *const *series_names, size_t n_series)
{
    double low = c->log_y ? INFINITY : 0, high = c->log_y ? -INFINITY : 0;
    size_t n = n_series > 0 ? n_series : 1;
    for (size_t i = 0; i < count * n; i++) {
        if (shown(values[i], c->log_y)) {
            include(values[i], &low, &high);
        }
    }
    if (count == 0 || !(low <= high)) {
        return;
    }
    double thick = n > 1 ? 9 : 13, row = thick * (double)n + 7, bottom = TOP + row * (double)count;
    bool key = n > 1 && series_names;
    axis x = make_axis(low, high, c->log_y, NAME_ROOM, RIGHT);
    open_chart(p, c, bottom + 44 + (key ? 20 : 0));
    grid(p, &x, true, TOP, bottom);
    axis_names(p, &(cli_chart){.x = c->x}, bottom);
    for (size_t i = 0; i < count; i++) {
        char cut[512];
        double y = TOP + row * (double)i + 3;
        label(p, NAME_ROOM - 8, y + thick * (double)n / 2 + 4, "end",
              tail(names[i], cut, sizeof(cut)));
        for (size_t s = 0; s < n; s++) {
            double v = values[i * n + s];
            if (!shown(v, c->log_y)) {
                continue;
            }
            double zero = c->log_y ? NAME_ROOM : at(&x, 0), end = at(&x, v);
            fprintf(p->f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                          "fill=\"var(--c%zu)\">",
                    end < zero ? end : zero, y + thick * (double)s, fabs(end - zero), thick - 1,
                    s % 4);
            tip(p, names[i], v);
            fputs("</rect>\n", p->f);
        }
    }
    for (size_t s = 0; key && s < n; s++) {
        legend(p, NAME_ROOM + 150.0 * (double)s, bottom + 54, series_names[s], s);
    }
    close_chart(p);
}

/* ---- histograms ---- */

void cli_page_histogram(cli_page *p, const cli_chart *c, double low, double high,
                        const double *counts, size_t count, double keep_low, double keep_high)
{
    double most = 0, least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (shown(counts[i], true)) {
            include(counts[i], &least, &most);
        }
    }
    if (!(most > 0) || !(high > low) || !isfinite(low) || !isfinite(high)) {
        return;
    }
    axis x = make_axis(low, high, false, LEFT, RIGHT);
    axis y = make_axis(c->log_y ? least : 0, most, c->log_y, BOTTOM, TOP);
    if (c->log_y) {
        y.low -= 1; /* the least bar is one too */
    }
    open_chart(p, c, HEIGHT);
    if (keep_low < keep_high) {
        double from = at(&x, keep_low > x.low ? keep_low : x.low);
        double to = at(&x, keep_high < x.high ? keep_high : x.high);
        fprintf(p->f, "<rect class=\"keep\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                from, TOP, to > from ? to - from : 0, BOTTOM - TOP);
    }
    grid(p, &x, true, TOP, BOTTOM);
    grid(p, &y, false, LEFT, RIGHT);
    axis_names(p, c, BOTTOM);
    double width = (high - low) / (double)count;
    for (size_t i = 0; i < count; i++) {
        if (shown(counts[i], true)) {
            double from = at(&x, low + width * (double)i), to = at(&x, low + width * (double)(i + 1));
            double top = at(&y, counts[i]);
            fprintf(p->f, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
                          "fill=\"var(--c0)\">",
                    from, top, to - from, BOTTOM - top);
            tip(p, NULL, counts[i]);
            fputs("</rect>\n", p->f);
        }
    }
    close_chart(p);
}
