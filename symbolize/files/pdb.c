#include "symbolize/files/pdb.h"

int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err)
{
	(void)identity;
	return err_set(err, ERR_TARGET, path, "PDB files are not read yet");
}

int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err)
{
	(void)functions;
	return err_set(err, ERR_TARGET, path, "PDB files are not read yet");
}
