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
	char paths[20][60]; /* paths of modules, by their number in the recording */
	uint32_t timestamps[20];
	uint32_t module_count;
	char said[400]; /* modules that were loaded ("+" and name) and unloaded ("-" and name) */
	char remark[800];
	unsigned remark_count;
} scene;

/* ---------------------------------------------------------------- a recorder */

uint32_t recorder_module(struct recorder *recorder, const struct module *module)
{
	(void)recorder;
	for (uint32_t i = 0; i < scene.module_count; i++) {
		if (!strcmp(scene.paths[i], module->path) &&
			scene.timestamps[i] == module->timestamp)
			return i;
	}
	assert_true(scene.module_count < 20);
	snprintf(scene.paths[scene.module_count], sizeof(scene.paths[0]), "%s", module->path);
	scene.timestamps[scene.module_count] = module->timestamp;
	return scene.module_count++;
}

void recorder_time(struct recorder *recorder, uint64_t time_ms)
{
	(void)recorder;
	assert_true(time_ms == 0 || time_ms == 5);
}

void recorder_module_is(struct recorder *recorder, uint32_t module, bool is_loaded)
{
	size_t len = strlen(scene.said);

	(void)recorder;
	assert_true(module < scene.module_count);
	snprintf(scene.said + len, sizeof(scene.said) - len, "%c%s ", is_loaded ? '+' : '-',
		strrchr(scene.paths[module], '\\') + 1);
}

uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count)
{
	(void)recorder;
	memcpy(scene.frames, frames, frame_count * sizeof(*frames));
	scene.frame_count = frame_count;
	return scene.stack_count++;
}

void recorder_remark(struct recorder *recorder, const char *text)
{
	(void)recorder;
	snprintf(scene.remark, sizeof(scene.remark), "%s", text);
	scene.remark_count++;
}

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	fake_init();
	tracer_place();
	tracer_place_others();
	AREA_PUT(load_count, 1);
	scene.reader = stack_reader_new(NULL, &fake.target, TRACER_AREA);
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

TEST(stack_is_read_once_and_its_frames_are_in_their_modules)
{
	uint32_t id = tracer_write_stack(APP + 0x1010, 3), other = tracer_write_stack(0x5000, 2);

	assert_int_equal(stack_reader_number(scene.reader, id), 0);
	assert_int_equal(scene.frame_count, 3);
	check_frame(0, "C:\\app\\app.exe", 0x1010);
	check_frame(2, "C:\\app\\app.exe", 0x1030);
	assert_int_equal(stack_reader_number(scene.reader, other), 1);
	check_frame(0, NULL, 0x5000);
	assert_int_equal(stack_reader_number(scene.reader, id), 0);
	assert_int_equal(scene.stack_count, 2);
}

TEST(stacks_that_lie_together_are_read_at_once)
{
	enum { STACKS = 10 };
	uint32_t ids[STACKS];
	uint64_t reads;

	for (unsigned i = 0; i < STACKS; i++)
		ids[i] = tracer_write_stack(APP + 0x1000 * i, 3);
	stack_reader_number(scene.reader, ids[0]);
	reads = fake.reads;
	for (unsigned i = 1; i < STACKS; i++) {
		assert_int_equal(stack_reader_number(scene.reader, ids[i]), i);
		check_frame(2, "C:\\app\\app.exe", 0x1000 * i + 0x20);
	}
	/* At most the reads that check for unloaded modules. */
	assert_true(fake.reads - reads < STACKS);
}

static void print_loaded(void)
{
	AREA_PUT(load_count, AREA_GET(load_count) + 1);
}

static struct module *load(const char *path)
{
	struct module *module = &fake.modules[fake.module_count++];

	*module = (struct module){.base = DLL, .size_bytes = 0x5000, .path = path};
	print_loaded();
	return module;
}

static void load_instead(struct module *module, const char *path)
{
	module->path = path;
	print_loaded();
}

/* Adds a stack that was made after `born` unloads. */
static uint32_t write_stack(uint64_t first, uint32_t depth, uint32_t born)
{
	uint32_t id = tracer_write_stack(first, depth);

	fake_write(TRACER_STACKS + 8 * (uint64_t)id + offsetof(struct tracer_stack, born), born, 4);
	stack_reader_begin(scene.reader);
	return id;
}

/* Records the unload of an image without headers. */
static void write_unload(const char *path, uint32_t bytes)
{
	uint64_t record = TRACER_MODULES + AREA_GET(modules_top);

	tracer_write_unload(path, DLL, bytes);
	fake_write(record + 8, 0, 4);
}

TEST(stack_is_in_module_that_was_there_when_it_was_made)
{
	uint32_t first = write_stack(DLL + 0x1010, 1, 0), second, third;
	struct module *module = load("C:\\app\\first.dll");

	write_unload(module->path, 0x5000);
	load_instead(module, "C:\\app\\second.dll");
	second = write_stack(DLL + 0x1010, 2, 1);
	write_unload(module->path, 0x5000);
	load_instead(module, "C:\\app\\third.dll");
	third = write_stack(DLL + 0x1010, 3, 2);
	stack_reader_number(scene.reader, third);
	check_frame(0, "C:\\app\\third.dll", 0x1010);
	stack_reader_number(scene.reader, first);
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	stack_reader_number(scene.reader, second);
	check_frame(1, "C:\\app\\second.dll", 0x1020);
	fake.module_count--;
	write_unload("C:\\app\\third.dll", 0x5000);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 4, 2));
	check_frame(0, "C:\\app\\third.dll", 0x1010);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 5, 3));
	check_frame(0, NULL, DLL + 0x1010);
}

TEST(loads_and_unloads_are_recorded_once)
{
	struct module *module = load("C:\\app\\first.dll");
	uint32_t id = tracer_write_stack(DLL + 0x1010, 1);

	stack_reader_number(scene.reader, id);
	assert_string_equal(scene.said, "+first.dll ");
	stack_reader_look(scene.reader, 5);
	write_unload(module->path, 0x5000);
	write_unload("C:\\app\\short.dll", 0x3000);
	load_instead(module, "C:\\app\\second.dll");
	stack_reader_look(scene.reader, 5);
	assert_string_equal(scene.said, "+first.dll -first.dll +short.dll -short.dll +second.dll ");
	scene.said[0] = '\0';
	/* The module was reloaded immediately. */
	write_unload("C:\\app\\second.dll", 0x5000);
	print_loaded();
	stack_reader_look(scene.reader, 5);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 3));
	assert_string_equal(scene.said, "-second.dll +second.dll ");
	scene.said[0] = '\0';
	/* The loader removes the module before the tracer reports the unload. */
	fake.module_count--;
	print_loaded();
	stack_reader_look(scene.reader, 5);
	assert_string_equal(scene.said, "-second.dll ");
	write_unload("C:\\app\\second.dll", 0x5000);
	stack_reader_look(scene.reader, 5);
	assert_string_equal(scene.said, "-second.dll ");
}

/* Listing modules takes a long time, during which the program's threads wait for room in their
 * rings. */
TEST(unload_costs_no_listing)
{
	struct module *module = load("C:\\app\\first.dll");
	uint32_t old = write_stack(DLL + 0x1010, 1, 0);

	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 0));
	assert_int_equal(fake.listings, 2); /* including the initial listing */
	write_unload(module->path, 0x5000);
	module->base += 0x10000;
	stack_reader_look(scene.reader, 5);
	assert_string_equal(scene.said, "+first.dll -first.dll ");
	stack_reader_number(scene.reader, old);
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	/* Other modules are loaded and unloaded, and the stacks are read afterwards. */
	for (uint32_t i = 1; i < 20; i++) {
		uint32_t stack = write_stack(DLL + 0x1010, 1, i);

		print_loaded();
		write_unload("C:\\app\\other.dll", 0x5000);
		stack_reader_number(scene.reader, write_stack(APP + 0x1010, 1 + i, i + 1));
		check_frame(0, "C:\\app\\app.exe", 0x1010);
		stack_reader_number(scene.reader, stack);
		check_frame(0, "C:\\app\\other.dll", 0x1010);
	}
	assert_int_equal(fake.listings, 2);
	module->base = DLL;
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 3, 20));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 4, 20));
	stack_reader_number(scene.reader, write_stack(0x5000, 2, 20));
	stack_reader_look(scene.reader, 5);
	assert_int_equal(fake.listings, 3);
}

/* Unloads a module during a listing. The listing may contain the module or its successor. */
static void unload_meanwhile(void)
{
	write_unload("C:\\app\\first.dll", 0x5000);
	fake.on_listing = NULL;
}

static void change_meanwhile(void)
{
	unload_meanwhile();
	load_instead(&fake.modules[fake.module_count - 1], "C:\\app\\second.dll");
}

TEST(what_goes_while_modules_are_listed_is_gone)
{
	load("C:\\app\\first.dll");
	fake.on_listing = unload_meanwhile;
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	assert_string_equal(scene.said, "+first.dll -first.dll ");
	load_instead(&fake.modules[fake.module_count - 1], "C:\\app\\second.dll");
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 1));
	check_frame(0, "C:\\app\\second.dll", 0x1010);
	assert_string_equal(scene.said, "+first.dll -first.dll +second.dll ");
	assert_int_equal(fake.listings, 3);
}

TEST(what_comes_while_modules_are_listed_stays)
{
	load("C:\\app\\first.dll");
	fake.on_listing = change_meanwhile;
	stack_reader_look(scene.reader, 5);
	assert_string_equal(scene.said, "+second.dll +first.dll -first.dll ");
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 1));
	check_frame(0, "C:\\app\\second.dll", 0x1010);
	assert_int_equal(fake.listings, 3);
}

static unsigned looks;

/* Reloads the module after the check for unloads and before the listing, when the load count is
 * read the second time. */
static bool reload_before_listing(uint64_t addr, unsigned char *to, size_t len)
{
	(void)to;
	(void)len;
	if (addr == TRACER_AREA + offsetof(struct tracer_area, load_count) && ++looks == 2) {
		write_unload("C:\\app\\first.dll", 0x5000);
		print_loaded();
	}
	return false;
}

TEST(what_was_loaded_again_before_modules_are_listed_stays)
{
	load("C:\\app\\first.dll");
	looks = 0;
	fake.made_up = reload_before_listing;
	stack_reader_look(scene.reader, 5);
	assert_true(looks > 1);
	fake.made_up = NULL;
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 1));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 0));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
}

/* The tracer reports an unload before the loader removes the module. */
TEST(what_came_to_place_of_module_that_was_just_going_is_found)
{
	struct module *module = load("C:\\app\\first.dll");

	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	write_unload("C:\\app\\first.dll", 0x5000);
	print_loaded(); /* another module, at another address */
	stack_reader_look(scene.reader, 5);
	load_instead(module, "C:\\app\\second.dll");
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 1));
	check_frame(0, "C:\\app\\second.dll", 0x1010);
}

/* Generated code must not cause repeated listings. */
TEST(modules_are_listed_when_one_was_loaded)
{
	load("C:\\app\\late.dll");
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	check_frame(0, "C:\\app\\late.dll", 0x1010); /* the frame was in no module before */
	fake.modules[fake.module_count - 1].size_bytes = 0x9000;
	stack_reader_number(scene.reader, write_stack(DLL + 0x6010, 2, 0));
	check_frame(0, NULL, DLL + 0x6010);
	print_loaded();
	stack_reader_number(scene.reader, write_stack(DLL + 0x6010, 3, 0));
	check_frame(0, "C:\\app\\late.dll", 0x6010);
}

TEST(without_loader_facts_modules_are_listed_periodically)
{
	stack_reader_free(scene.reader);
	AREA_PUT(load_count, 0);
	scene.reader = stack_reader_new(NULL, &fake.target, TRACER_AREA);
	load("C:\\app\\late.dll");
	AREA_PUT(load_count, 0);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 0));
	check_frame(0, NULL, DLL + 0x1010);
	usleep(250 * 1000);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 3, 0));
	check_frame(0, "C:\\app\\late.dll", 0x1010);
	assert_string_equal(scene.said, "+late.dll ");
}

TEST(another_build_of_what_was_unloaded_is_not_taken_for_it)
{
	const uint64_t timestamp = DLL + 0x80 + 8;

	print_loaded();
	fake_map(DLL, 0x5000);
	fake_write_module(DLL, 64, 0x5000, 0x1000, "C:\\app\\plug.dll");
	fake_write(timestamp, 111, 4);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	assert_int_equal(scene.timestamps[scene.frames[0].module], 111);
	fake_write(timestamp, 222, 4);
	print_loaded();
	tracer_write_unload("C:\\app\\plug.dll", DLL, 0x5000);
	fake_write(TRACER_MODULES + 8, 111, 4);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 1));
	assert_int_equal(scene.timestamps[scene.frames[0].module], 222);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 3, 0));
	assert_int_equal(scene.timestamps[scene.frames[0].module], 111);
	assert_string_equal(scene.said, "+plug.dll -plug.dll +plug.dll ");
}

/* The table of unloads was full, so only the address is known. */
TEST(frames_of_what_is_forgotten_are_in_no_module)
{
	load("C:\\app\\second.dll");
	AREA_PUT(unload_limit, 0);
	AREA_PUT(unload_count, 1);
	AREA_PUT(lost_from, DLL);
	AREA_PUT(lost_to, DLL + 0x5000);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	check_frame(0, NULL, TRACER_LOST_BASE + DLL + 0x1010);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 1));
	check_frame(0, "C:\\app\\second.dll", 0x1010);
}

/* Invalid unload data are treated as no unloads. */
TEST(unloads_may_hold_anything)
{
	load("C:\\app\\first.dll");
	AREA_PUT(unload_count, 5);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 1, 0));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
	AREA_PUT(unload_count, 1u << 30);
	stack_reader_number(scene.reader, write_stack(DLL + 0x1010, 2, 0));
	check_frame(0, "C:\\app\\first.dll", 0x1010);
}

TEST(what_is_no_stack_has_no_number)
{
	uint32_t deep = tracer_write_stack(0x1000, TRACER_DEPTH_MAX), none;

	assert_int_equal(stack_reader_number(scene.reader, deep), 0);
	assert_int_equal(scene.frame_count, TRACER_DEPTH_MAX);
	fake_write(TRACER_STACKS + 8 * (uint64_t)deep + 8, TRACER_DEPTH_MAX + 1, 2);
	none = tracer_write_stack(0x1000, 1);
	fake_write(TRACER_STACKS + 8 * (uint64_t)none + 8, 0, 2);
	assert_int_equal(stack_reader_number(scene.reader, none), RECORD_NO_STACK);
	assert_int_equal(stack_reader_number(scene.reader, UINT32_MAX), RECORD_NO_STACK);
	assert_int_equal(
		stack_reader_number(scene.reader, TRACER_STACKS_BYTES / 8), RECORD_NO_STACK);
	/* a stack that was read stays known */
	assert_int_equal(stack_reader_number(scene.reader, deep), 0);
}

TEST(modules_without_rules_for_unwinding_are_remarked_on_once)
{
	static const char *const paths[] = {
		"D:\\app\\one.dll", "C:\\windows\\ntdll.dll", "D:\\app\\two.dll"};

	for (unsigned i = 0; i < 3; i++)
		fake.modules[fake.module_count++] = (struct module){
			.base = 0x400000 + i * 0x10000, .size_bytes = 0x5000, .path = paths[i]};
	AREA_PUT(load_count, 2);
	stack_reader_look(scene.reader, 5);
	stack_reader_remark(scene.reader);
	assert_int_equal(scene.remark_count, 0);
	AREA_PUT(bare_images[0], 0x400000);
	AREA_PUT(bare_images[1], 0x410000);
	stack_reader_remark(scene.reader);
	stack_reader_remark(scene.reader);
	assert_int_equal(scene.remark_count, 1);
	assert_non_null(strstr(scene.remark, "no unwind information in one.dll; build it"));
	AREA_PUT(bare_images[2], 0x420000);
	stack_reader_remark(scene.reader);
	assert_int_equal(scene.remark_count, 2);
	assert_non_null(strstr(scene.remark, "no unwind information in two.dll; build it"));
}

TEST(area_of_another_version_has_no_stacks)
{
	uint32_t id = tracer_write_stack(APP + 0x1010, 3);

	AREA_PUT(version, 77);
	assert_int_equal(stack_reader_number(scene.reader, id), RECORD_NO_STACK);
}
