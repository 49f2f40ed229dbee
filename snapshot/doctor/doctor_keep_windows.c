/* Writer of the folder of hsnap doctor --keep: collects the strings to overwrite, and writes
 * minidumps, truths and machine.txt. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os_windows.h"
#include "core/io/out.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define PATH_UNITS 32768 /* maximum length of any path */
#define NAME_UNITS 300 /* maximum length of user and machine names */

static void add_wide(struct doctor_secrets *secrets, const wchar_t *wide, bool is_path)
{
	char *text = wide_to_utf8(wide);

	if (text)
		doctor_secrets_add(secrets, text, is_path);
	free(text);
}

static void add_folder_of(struct doctor_secrets *secrets, wchar_t *path)
{
	wchar_t *name = wcsrchr(path, '\\');

	if (!name)
		return;
	*name = 0;
	add_wide(secrets, path, true);
}

/* Collects secrets: the folders of the programs and of the user, and the names of the user and the
 * machine. */
static void collect_secrets(struct doctor_keep *keep)
{
	struct doctor_secrets *secrets = &keep->secrets;
	wchar_t *path = xmalloc(PATH_UNITS * sizeof(*path)), *folder = wide_from_utf8(keep->folder);
	DWORD units = NAME_UNITS;
	char *system;

	system = GetSystemDirectoryW(path, NAME_UNITS) ? wide_to_utf8(path) : NULL;
	snprintf(secrets->system, sizeof(secrets->system), "%s", system ? system : "");
	free(system);
	if (folder && GetFullPathNameW(folder, PATH_UNITS, path, NULL))
		add_wide(secrets, path, true);
	if (GetModuleFileNameW(NULL, path, PATH_UNITS))
		add_folder_of(secrets, path);
	if (GetEnvironmentVariableW(L"USERPROFILE", path, PATH_UNITS))
		add_wide(secrets, path, true);
	if (GetUserNameW(path, &units))
		add_wide(secrets, path, false);
	units = NAME_UNITS;
	if (GetComputerNameExW(ComputerNamePhysicalDnsHostname, path, &units))
		add_wide(secrets, path, false);
	units = NAME_UNITS;
	if (GetComputerNameExW(ComputerNameNetBIOS, path, &units))
		add_wide(secrets, path, false);
	free(folder);
	free(path);
}

int doctor_keep_begin(struct doctor_keep *keep, struct err *err)
{
	wchar_t *path = wide_path(keep->folder);
	char text[300];
	DWORD code;
	BOOL is_made;

	is_made = path && CreateDirectoryW(path, NULL);
	code = path ? GetLastError() : ERROR_INVALID_NAME;
	free(path);
	if (!is_made && code == ERROR_ALREADY_EXISTS)
		return err_set(err, ERR_EXISTS, keep->folder, NULL);
	if (!is_made)
		return err_set(err, ERR_CREATE, keep->folder, "%s",
			windows_error(code, text, sizeof(text)));
	collect_secrets(keep);
	return 0;
}

static int write_file(const struct doctor_keep *keep, const char *name, const void *bytes,
	size_t len, unsigned flags, struct err *err)
{
	struct buf path = {0};
	struct out out;
	int rc;

	buf_printf(&path, "%s\\%s", keep->folder, name);
	rc = out_open_as(&out, path.data, flags, err);
	if (!rc) {
		out_write(&out, bytes, len);
		rc = out_commit(&out, err);
	}
	buf_release(&path);
	return rc;
}

/* Writes the minidump, packed and without secrets. Returns 0 or an error. */
static int write_dump(
	const struct doctor_keep *keep, const char *name, HANDLE file, struct err *err)
{
	HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, 0, NULL);
	unsigned char *bytes = mapping ? MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, 0) : NULL;
	char text[300];
	LARGE_INTEGER len;
	int rc;

	if (!bytes || !GetFileSizeEx(file, &len)) {
		rc = err_set(err, ERR_READ, "a temporary file", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	} else {
		doctor_blank(&keep->secrets, bytes, (size_t)len.QuadPart);
		rc = write_file(keep, name, bytes, (size_t)len.QuadPart, OUT_GZIP, err);
	}
	if (bytes)
		UnmapViewOfFile(bytes);
	if (mapping)
		CloseHandle(mapping);
	return rc;
}

/* Records a stored child, and facts about the first child of each bitness. */
static void record_child(struct doctor_keep *keep, const char *name,
	const struct doctor_truth *truth, struct target *target, HANDLE process)
{
	bool *has = target->bits == 64 ? &keep->has_64 : &keep->has_32;
	uint32_t count = 0;

	target_u32(target, target->peb + peb_layout(target->bits)->heap_count, &count);
	buf_printf(&keep->machine,
		"%s is kept: flags %" PRIX32 ", GetProcessHeaps() %" PRIu32
		", PEB.NumberOfHeaps %" PRIu32 "\n",
		name, nt_global_flag(target), truth->listed_count, count);
	if (!*has)
		doctor_machine_child(&keep->machine, target, process);
	*has = true;
}

void doctor_keep_child(
	struct doctor *doctor, const char *state, struct target *target, void *process, void *file)
{
	struct doctor_keep *keep = doctor->keep;
	char name[40], dump[60], truth[60];
	struct buf text = {0};

	if (keep->err.code)
		return;
	snprintf(name, sizeof(name), "%s-%u", state, target->bits);
	snprintf(dump, sizeof(dump), "%s.dmp.gz", name);
	snprintf(truth, sizeof(truth), "%s.truth", name);
	doctor_truth_text(&text, doctor->truth, target, nt_global_flag(target));
	if (!write_dump(keep, dump, file, &keep->err) &&
		!write_file(keep, truth, text.data, text.len, 0, &keep->err))
		record_child(keep, name, doctor->truth, target, process);
	buf_release(&text);
}

int doctor_keep_end(struct doctor_keep *keep, struct err *err)
{
	struct buf text = {0};

	doctor_machine_system(&text);
	if (keep->machine.len)
		buf_add(&text, keep->machine.data, keep->machine.len);
	/* The reasons may contain file names. */
	doctor_blank(&keep->secrets, (unsigned char *)text.data, text.len);
	if (!keep->err.code)
		write_file(keep, "machine.txt", text.data, text.len, 0, &keep->err);
	buf_release(&text);
	buf_release(&keep->machine);
	*err = keep->err;
	return -(int)keep->err.code;
}
