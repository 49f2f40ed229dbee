/* Who may change a file or a folder, by its list of rights (DACL). */
#ifndef SNAPSHOT_RIGHTS_WINDOWS_H
#define SNAPSHOT_RIGHTS_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* For what is made for the system: it and administrators may do all with it and with what comes into it, others
 * nothing, whatever the folder above it says ("Security Descriptor String Format", Microsoft Learn). */
#define RIGHTS_OF_ADMINISTRATORS L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* Whether it gives a right to change something, or to get such a right, to one of those that every user is: Everyone,
 * Users, Authenticated Users, Interactive. Denials are not counted against it. No list at all gives all rights. */
bool rights_are_everybodys(ACL *list);

/* The same of what is at path, and of a link there, whose target whoever may change it may choose; false when the
 * rights cannot be read. */
bool rights_of_path_are_everybodys(const wchar_t *path);

#endif
