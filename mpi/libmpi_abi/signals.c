//go:build linux && cgo

#define _GNU_SOURCE
#include "signals.h"

#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* The Go runtime makes a fault in its own code a panic, and for any other it prints the stacks of its
   goroutines and exits with 2. A program in C expects to be ended by the signal, with a core dump that
   has its own stack, or that a handler that was there before is called. So a fault outside of this
   library does not reach the runtime. Handlers that the program sets later replace these. */

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE};

enum { FAULTS = sizeof faults / sizeof faults[0] };

static struct sigaction before[FAULTS]; /* the handlers when the library was loaded */
static struct sigaction runtime_[FAULTS]; /* those of the Go runtime */
static uintptr_t text_begin, text_end;  /* code of this library */

/* Before the Go runtime starts, which is at the default priority. */
__attribute__((constructor(101))) static void remember(void)
{
	for (int i = 0; i < FAULTS; i++)
		sigaction(faults[i], NULL, &before[i]);
}

static int find_text(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t here = (uintptr_t)&remember;
	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && here >= begin && here < begin + p->p_memsz) {
			text_begin = begin;
			text_end = begin + p->p_memsz;
			return 1;
		}
	}
	return 0;
}

static uintptr_t pc_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#else
	(void)context;
	return text_begin;
#endif
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int i = 0;
	while (faults[i] != sig)
		i++;
	uintptr_t pc = pc_of(context);
	if (info->si_code > 0 && pc >= text_begin && pc < text_end) {
		runtime_[i].sa_sigaction(sig, info, context);
		return;
	}
	if (before[i].sa_flags & SA_SIGINFO) {
		before[i].sa_sigaction(sig, info, context);
		return;
	}
	if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
		before[i].sa_handler(sig);
		return;
	}
	/* The instruction faults again when the handler returns; a signal that was sent is sent again. */
	struct sigaction none;
	memset(&none, 0, sizeof none);
	none.sa_handler = SIG_DFL;
	sigaction(sig, &none, NULL);
	if (info->si_code <= 0)
		raise(sig);
}

void weft_install_signals(void)
{
	dl_iterate_phdr(find_text, NULL);
	if (text_end == 0)
		return;
	for (int i = 0; i < FAULTS; i++) {
		struct sigaction own;
		if (sigaction(faults[i], NULL, &runtime_[i]) != 0 || !(runtime_[i].sa_flags & SA_SIGINFO))
			continue;
		own = runtime_[i];
		own.sa_sigaction = on_fault;
		sigaction(faults[i], &own, NULL);
	}
}
