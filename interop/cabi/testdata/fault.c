// A fault in the program ends it by the signal, as without MPI.
// cabi: ranks=1 status=139
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	*(volatile int *)16 = 1;
	return 0;
}
