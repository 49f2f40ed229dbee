/* lock_key IMAGE [read]: makes a key for IMAGE in Image File Execution Options. The key denies all
 * access, or with "read" permits only reading. The program waits like the samples, and deletes the
 * key at its end. */
#include "samples/step.h"

#define ROOT "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"

/* Gives Everyone these rights to the key, and no others. */
static int allow(HKEY key, REGSAM access)
{
	SID everybody = {SID_REVISION, 1, {SECURITY_WORLD_SID_AUTHORITY}, {SECURITY_WORLD_RID}};
	SECURITY_DESCRIPTOR rights;
	union {
		ACL acl;
		unsigned char bytes[200];
	} list;

	InitializeAcl(&list.acl, sizeof(list), ACL_REVISION);
	if (access)
		AddAccessAllowedAce(&list.acl, ACL_REVISION, access, &everybody);
	InitializeSecurityDescriptor(&rights, SECURITY_DESCRIPTOR_REVISION);
	SetSecurityDescriptorDacl(&rights, TRUE, &list.acl, FALSE);
	return RegSetKeySecurity(key, DACL_SECURITY_INFORMATION, &rights);
}

int main(int argc, char **argv)
{
	HKEY root, key;

	if (argc < 2 || RegOpenKeyExA(HKEY_LOCAL_MACHINE, ROOT, 0, KEY_ALL_ACCESS, &root) ||
		RegCreateKeyExA(root, argv[1], 0, NULL, 0, KEY_ALL_ACCESS, NULL, &key, NULL))
		return 4;
	if (!allow(key, argc > 2 ? KEY_READ : 0))
		step_done(1);
	if (allow(key, KEY_ALL_ACCESS))
		return 5;
	RegCloseKey(key);
	return RegDeleteKeyA(root, argv[1]) ? 6 : 0;
}
