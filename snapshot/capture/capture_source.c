/* Sources of stacks: their names, and the search for them in a target. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/capture/capture.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/stacks/tracer_read.h"

int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err)
{
	static const char *const names[] = {
		[STACKS_AUTO] = "auto",
		[STACKS_UST] = "ust",
		[STACKS_TRACER] = "tracer",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i])) {
			*stacks = (enum capture_stacks)i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE, name, "the source of stacks is auto, ust or tracer");
}

int capture_source_find(struct target *target, const struct snapshot *modules,
	enum capture_stacks wanted, struct capture_source *source, struct err *err)
{
	struct tracer_area *area;
	int rc;

	*source = (struct capture_source){0};
	if (wanted == STACKS_AUTO || wanted == STACKS_UST)
		source->has_ust = nt_global_flag(target) & NT_FLAG_UST;
	if (wanted != STACKS_AUTO && wanted != STACKS_TRACER)
		return 0;
	area = xmalloc(sizeof(*area));
	rc = tracer_find(target, modules->modules, modules->module_count, &source->area_addr, err);
	if (!rc)
		rc = tracer_area_read(target, source->area_addr, area, err);
	if (!rc) {
		rc = tracer_check(target, area, err);
		source->has_tracer = !rc;
		source->sample_bytes = rc ? 0 : area->sample_bytes;
		source->may_have_all = !rc && tables_may_have_all(area);
		source->is_attached = !rc && area->flags & TRACER_FLAG_ATTACHED;
		source->is_loaded = rc == -ERR_NOT_TRACED;
		source->is_detached = area->state == TRACER_OFF;
	}
	free(area);
	return rc;
}

const char *capture_source_name(const struct capture_source *source)
{
	return source->has_tracer ? "tracer" : source->has_ust ? "ust" : "none";
}
