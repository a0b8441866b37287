/* What the generated C functions need. */
#ifndef WEFT_SHIM_H
#define WEFT_SHIM_H

#include "mpi.h"
#include "answers.h"
#include "_cgo_export.h"

#endif
