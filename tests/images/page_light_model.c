#include "tests/images/page_parts.h"

/* It takes a model of NT heaps. */
uint64_t page_light_make(struct image *image, const struct model_request *request)
{
	(void)request;
	image_die("%s: no model of an NT heap", image_profile(image)->name);
}
