/* quantize_page.h: what quantization cost and won, as a page. */
#ifndef NORI_CLI_QUANTIZE_PAGE_H
#define NORI_CLI_QUANTIZE_PAGE_H

#include "cli.h"

/* Writes the file of --html. 0 or an exit code (a message was given). */
int quantize_page(const cli_args *args, const nori_quantize_report *report);

#endif
