#include "tests/images/image_inside.h"

/* No database yet: no record anywhere. */
void ust_model_make(struct image *image)
{
	(void)image;
}
