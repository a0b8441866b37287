#ifndef WEFT_SIGNALS_H
#define WEFT_SIGNALS_H

/* Puts handlers of SIGSEGV, SIGBUS and SIGFPE before those of the Go runtime, after its start. */
void weft_install_signals(void);

#endif
