/* ETW logs: the recording of each process in any log is valid. The mutator keeps libFuzzer's
 * changes and sometimes corrects the lengths in buffer heads. */
#include "tests/fuzz/fuzz.h"

#include "core/base/os.h"
#include "core/etw/etw.h"
#include "core/record/record.h"

static void check_recording(const char *path)
{
	struct recording *recording;
	const struct record_facts *facts;
	struct record_cursor *cursor;
	struct record_event event;
	uint64_t count = 0;
	int rc;

	HOLDS(!recording_open(&recording, path, NULL));
	facts = recording_facts(recording);
	HOLDS(!facts->is_cut);
	HOLDS(!record_cursor_open(&cursor, recording, 0, facts->event_count, NULL));
	while ((rc = record_next(cursor, &event, NULL)) == 1)
		count++;
	HOLDS(!rc && count == facts->event_count);
	record_cursor_close(cursor);
	recording_close(recording);
}

static void record(struct etw_log *log, const struct etw_process *process)
{
	char path[60];
	struct etw_record_options options = {
		.path = path, .keeps_addresses = true, .is_temporary = true};
	struct err err = {0};
	int rc;

	snprintf(path, sizeof(path), "/dev/shm/fuzz-etw-%lu", os_pid());
	rc = etw_record(log, process, &options, NULL, NULL, &err);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc)
		check_recording(path);
	os_remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *paths[] = {fuzz_file(0, bytes, len)};
	const struct etw_process *process;
	const struct etw_facts *facts;
	struct etw_log *log;
	struct err err = {0};
	int rc = etw_open(&log, paths, 1, &err);

	HOLDS(!rc || (int)err.code == -rc);
	if (rc)
		return 0;
	rc = etw_scan(log, len % 2, NULL, NULL, &err);
	if (!rc && len % 8 == 0)
		rc = etw_bind(log, NULL, NULL, &err);
	facts = etw_facts(log);
	for (size_t i = 1; !rc && i < facts->process_count; i++)
		HOLDS(facts->processes[i - 1].pid < facts->processes[i].pid);
	if (!rc && facts->process_count)
		record(log, &facts->processes[len % facts->process_count]);
	etw_choose(log, NULL, &process, &err);
	etw_choose(log, "app.exe", &process, &err);
	etw_close(log);
	return 0;
}
