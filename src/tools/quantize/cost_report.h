/* cost_report.h: the report from the inside. */
#ifndef NORI_TOOLS_QUANTIZE_COST_REPORT_H
#define NORI_TOOLS_QUANTIZE_COST_REPORT_H

#include "tools/quantize/quantize.h"

struct nori_quantize_report {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__vec nodes;  /* nori_quantize_node * */
    nori__vec values; /* nori_quantize_value * */
    nori__vec notes;  /* char * */
    nori__vec advice; /* char * */
    nori__vec steps;  /* nori_quantize_step_row * */
    nori__vec tries;  /* nori_quantize_try * */
    nori__map by_node;  /* path -> nori_quantize_node * */
    nori_quantize_summary summary;
};

#endif
