// The ptxbench program: parses the command line, runs one command, turns an Error into a message and an exit code.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <exception>
#include <new>

#include "app/commands.h"

namespace ptxb::app {

namespace {

Result<int> dispatch(const Options& options, const Terminal& terminal) {
  switch (options.command) {
    case Command::Help: terminal.print(help_text(options.topic)); return 0;
    case Command::Version: terminal.print("ptxbench " PTXB_VERSION "\n"); return 0;
    case Command::Doctor: return run_doctor(options, terminal);
    case Command::Tasks: return run_tasks(options, terminal);
    case Command::Eval: return run_eval(options, terminal);
    case Command::Plan: return run_plan(options, terminal);
    case Command::PlanShow: return run_plan_show(options, terminal);
    case Command::Replay: return run_replay(options, terminal);
    case Command::Check: return run_check(options, terminal);
    case Command::Selftest: return run_selftest(options, terminal);
  }
  return harness_error("unknown command");
}

int real_main(int argc, char** argv) {
  // A reader that went away (| head) ends us quietly by a failed write, not by a signal in the middle of clean-up.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto options = parse_options(arguments);
  if (!options) {
    Terminal::make(true, false).error(options.error());
    return exit_code(options.error());
  }
  Terminal terminal = Terminal::make(options->no_color, options->quiet || options->json == "-");
  auto code = dispatch(*options, terminal);
  terminal.clear_progress();
  if (!code) {
    terminal.error(code.error());
    return exit_code(code.error());
  }
  return *code;
}

}  // namespace

}  // namespace ptxb::app

int main(int argc, char** argv) {
  try {
    return ptxb::app::real_main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("ptxbench: error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptxbench: error: unexpected: %s\n", error.what());
  }
  return 3;
}
