/* The tracer's stacks as a recording has them: read while the target runs, frame by frame in their modules. */
#include "tests/unit/t.h"

#include <unistd.h>

#include "snapshot/record/replay.h"
#include "tests/unit/fake_tracer.h"

#define APP 0x140000000u
#define DLL 0x180000000u

static struct {
	struct stack_reader *reader;
	struct record_frame frames[TRACER_DEPTH_MAX];
	unsigned frame_count, stack_count;
	char paths[20][60]; /* of modules, by the recording's number */
	uint32_t module_count;
} scene;

/* ---------------------------------------------------------------- a recorder */

uint32_t recorder_module(struct recorder *recorder, const struct module *module)
{
	(void)recorder;
	for (uint32_t i = 0; i < scene.module_count; i++) {
		if (!strcmp(scene.paths[i], module->path))
			return i;
	}
	assert_true(scene.module_count < 20);
	snprintf(scene.paths[scene.module_count], sizeof(scene.paths[0]), "%s", module->path);
	return scene.module_count++;
}

uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count)
{
	(void)recorder;
	memcpy(scene.frames, frames, frame_count * sizeof(*frames));
	scene.frame_count = frame_count;
	return scene.stack_count++;
}

static int begin(void **state)
{
	struct err err;

	(void)state;
	memset(&scene, 0, sizeof(scene));
	fake_init();
	tracer_place();
	assert_int_equal(stack_reader_new(&scene.reader, NULL, &fake.target, TRACER_AREA, &err), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	stack_reader_free(scene.reader);
	fake_release();
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND begin, end

static void check_frame(unsigned at, const char *path, uint64_t offset)
{
	assert_true(at < scene.frame_count);
	assert_int_equal(scene.frames[at].offset, offset);
	if (path)
		assert_string_equal(scene.paths[scene.frames[at].module], path);
	else
		assert_int_equal(scene.frames[at].module, RECORD_NO_MODULE);
}

TEST(a_stack_is_read_once_and_its_frames_are_in_their_modules)
{
	uint32_t id = tracer_put_stack(APP + 0x1010, 3), other = tracer_put_stack(0x5000, 2);

	assert_int_equal(stack_reader_number(scene.reader, id), 0);
	assert_int_equal(scene.frame_count, 3);
	check_frame(0, "C:\\app\\app.exe", 0x1010);
	check_frame(2, "C:\\app\\app.exe", 0x1030);
	assert_int_equal(stack_reader_number(scene.reader, other), 1);
	check_frame(0, NULL, 0x5000);
	assert_int_equal(stack_reader_number(scene.reader, id), 0);
	assert_int_equal(scene.stack_count, 2);
}

/* Another one may be where a module was: it is looked for as soon as one has gone. */
TEST(a_module_that_took_the_place_of_another_is_named)
{
	struct module *module = &fake.modules[fake.module_count++];

	*module = (struct module){.base = DLL, .size_bytes = 0x5000, .path = "C:\\app\\first.dll"};
	stack_reader_number(scene.reader, tracer_put_stack(DLL + 0x1010, 1));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	module->path = "C:\\app\\second.dll";
	AREA_PUT(unload_count, 1);
	stack_reader_number(scene.reader, tracer_put_stack(DLL + 0x1010, 2));
	check_frame(0, "C:\\app\\second.dll", 0x1010);
}

TEST(a_module_that_came_is_named_after_a_while)
{
	stack_reader_number(scene.reader, tracer_put_stack(APP + 0x1010, 1));
	fake.modules[fake.module_count++] =
		(struct module){.base = DLL, .size_bytes = 0x5000, .path = "C:\\app\\late.dll"};
	usleep(250 * 1000);
	stack_reader_number(scene.reader, tracer_put_stack(DLL + 0x1010, 1));
	check_frame(0, "C:\\app\\late.dll", 0x1010);
}

TEST(what_is_no_stack_has_no_number)
{
	uint32_t deep = tracer_put_stack(0x1000, TRACER_DEPTH_MAX), none;

	assert_int_equal(stack_reader_number(scene.reader, deep), 0);
	assert_int_equal(scene.frame_count, TRACER_DEPTH_MAX);
	fake_put(TRACER_STACKS + 8 * (uint64_t)deep + 8, TRACER_DEPTH_MAX + 1, 2);
	none = tracer_put_stack(0x1000, 1);
	fake_put(TRACER_STACKS + 8 * (uint64_t)none + 8, 0, 2);
	assert_int_equal(stack_reader_number(scene.reader, none), RECORD_NO_STACK);
	assert_int_equal(stack_reader_number(scene.reader, UINT32_MAX), RECORD_NO_STACK);
	assert_int_equal(
		stack_reader_number(scene.reader, TRACER_STACKS_BYTES / 8), RECORD_NO_STACK);
	/* one that was read is known */
	assert_int_equal(stack_reader_number(scene.reader, deep), 0);
}

/* The tracer's area must be one that is understood. */
TEST(an_area_of_another_version_is_refused)
{
	struct stack_reader *reader = NULL;
	struct err err;

	AREA_PUT(version, 77);
	assert_int_equal(
		stack_reader_new(&reader, NULL, &fake.target, TRACER_AREA, &err), -ERR_TARGET);
	assert_null(reader);
}
