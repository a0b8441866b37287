/* Functions of C that Go calls: trampolines to those of the program, and what only C has. The
   address of a function of the program comes as an integer. */
#ifndef WEFT_CALLBACKS_H
#define WEFT_CALLBACKS_H

#include <stdint.h>

void weft_call_user_op(uintptr_t fn, uintptr_t in, uintptr_t inout, int64_t count, uintptr_t datatype, int large);
int weft_call_copy_attr(uintptr_t fn, uintptr_t object, int keyval, uintptr_t extra, uintptr_t in, uintptr_t *out, int *flag);
int weft_call_delete_attr(uintptr_t fn, uintptr_t object, int keyval, uintptr_t value, uintptr_t extra);
int weft_call_errhandler(uintptr_t fn, uintptr_t object, int code);
int weft_call_grequest_query(uintptr_t fn, uintptr_t extra, uintptr_t status);
int weft_call_grequest_free(uintptr_t fn, uintptr_t extra);
int weft_call_grequest_cancel(uintptr_t fn, uintptr_t extra, int complete);
int weft_call_datarep_extent(uintptr_t fn, uintptr_t datatype, int64_t *extent, uintptr_t extra);
int weft_call_datarep_convert(uintptr_t fn, uintptr_t user, uintptr_t datatype, int64_t count, uintptr_t file,
	int64_t position, uintptr_t extra, int large);
uintptr_t weft_allocate(int64_t n, int64_t alignment);
void weft_release(uintptr_t p);
void weft_at_exit(void);
void weft_flush(void);
void weft_exit(int code);

#endif
