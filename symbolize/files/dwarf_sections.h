/* Whether an image file carries DWARF. */
#ifndef SYMBOLIZE_DWARF_SECTIONS_H
#define SYMBOLIZE_DWARF_SECTIONS_H

#include "core/pe.h"

/* True when one of its sections is called ".debug_info" or ".zdebug_info". source is its file. */
bool image_has_dwarf(const struct pe_source *source, const struct pe_image *image);

#endif
