#include "snapshot/control/start_fail_windows.h"

#include "core/utf_windows.h"

int start_fail(DWORD code, const char *place, struct err *err)
{
	char text[300];

	if (code == ERROR_ELEVATION_REQUIRED)
		return err_set(err, ERR_ELEVATION, place, NULL);
	return err_set(err, ERR_START, place, "%s", windows_error(code, text, sizeof(text)));
}
