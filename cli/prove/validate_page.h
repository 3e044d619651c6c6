/* validate_page.h: the page that --html names: what validate_print.h says, with pictures. Nothing is
 * written without that option. 0 or an exit code. */
#ifndef NORI_CLI_VALIDATE_PAGE_H
#define NORI_CLI_VALIDATE_PAGE_H

#include "validate_print.h"

int validate_page_outputs(const cli_args *args, const nori_session *s, const validate_names *n,
                          const nori_agreement *rows, size_t count);
int validate_page_levels(const cli_args *args, const nori_level_row rows[2]);
int validate_page_layers(const cli_args *args, const nori_layers *layers);

#endif
