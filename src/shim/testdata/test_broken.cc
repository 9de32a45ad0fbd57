// Candidates that go wrong before run is called; PTXB_BROKEN chooses how.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "cuda_abi.h"

#if PTXB_BROKEN == 1  // no entry at all
extern "C" void go() {}
#elif PTXB_BROKEN == 2  // the header's trampoline without run
extern "C" void run(void*);
extern "C" void ptxbench_call(void** args) { run(args[0]); }
#elif PTXB_BROKEN == 3  // ends the process while it is loaded
[[gnu::constructor]] static void leave() { exit(0); }
extern "C" void run() {}
extern "C" void ptxbench_call(void**) { run(); }
#elif PTXB_BROKEN == 4  // a symbol of a library that is not there
extern "C" int cublasCreate_v2(void**);
extern "C" void run() {
  void* handle;
  cublasCreate_v2(&handle);
}
extern "C" void ptxbench_call(void**) { run(); }
#endif
