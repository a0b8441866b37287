/* Strings whose length is an argument: in C it counts the 0 at the end, in Fortran
 * there is none. */
#include "fortran.h"

/* buffer returns room for a string of len characters, or what C takes for none. */
static char *buffer(int len) { return len >= 0 && len < INT32_MAX ? malloc(len + 1) : NULL; }

void pmpi_info_get_(int *info, const char *key, int *valuelen, char *value, int *flag, int *ierror, size_t key_len,
                    size_t value_len) {
    char *c_key = weft_word(key, key_len), *c_value = buffer(*valuelen);
    int yes = 0, e = PMPI_Info_get(TO_C(MPI_Info, *info), c_key, *valuelen, c_value, &yes);
    if (e == MPI_SUCCESS && (*flag = yes))
        weft_pad(value, value_len, c_value);
    free(c_key);
    free(c_value);
    if (ierror != NULL)
        *ierror = e;
}

/* MPI-5.0, 10: a buflen of 0 asks for the length and leaves value alone. */
void pmpi_info_get_string_(int *info, const char *key, int *buflen, char *value, int *flag, int *ierror, size_t key_len,
                           size_t value_len) {
    char *c_key = weft_word(key, key_len), *c_value = buffer(*buflen);
    int yes = 0, c_len = *buflen > 0 && *buflen < INT32_MAX ? *buflen + 1 : *buflen;
    int asked = c_len, e = PMPI_Info_get_string(TO_C(MPI_Info, *info), c_key, &c_len, c_value, &yes);
    if (e == MPI_SUCCESS && (*flag = yes)) {
        if (asked > 0)
            weft_pad(value, value_len, c_value);
        *buflen = c_len > 0 ? c_len - 1 : 0;
    }
    free(c_key);
    free(c_value);
    if (ierror != NULL)
        *ierror = e;
}

void pmpi_session_get_nth_pset_(int *session, int *info, int *n, int *pset_len, char *pset_name, int *ierror,
                                size_t name_len) {
    char *c_name = buffer(*pset_len);
    int c_len = *pset_len > 0 && *pset_len < INT32_MAX ? *pset_len + 1 : *pset_len, asked = c_len;
    int e = PMPI_Session_get_nth_pset(TO_C(MPI_Session, *session), TO_C(MPI_Info, *info), *n, &c_len, c_name);
    if (e == MPI_SUCCESS) {
        if (asked > 0)
            weft_pad(pset_name, name_len, c_name);
        *pset_len = c_len > 0 ? c_len - 1 : 0;
    }
    free(c_name);
    if (ierror != NULL)
        *ierror = e;
}

WEAK_F08(info_get) WEAK_F08(info_get_string) WEAK_F08(session_get_nth_pset)
